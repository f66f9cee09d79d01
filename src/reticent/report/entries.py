"""Entries: what attacks on runs and audits of them left behind, read as far as a page shows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from reticent.errors import DataError
from reticent.results.fields import Fields
from reticent.results.sealing import read_sealed


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Points of a curve: false alarms, and members found."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]

    @staticmethod
    def of(fields: Fields) -> Rates | None:
        """The curve among these fields, if there is one."""
        fpr, tpr = fields.many("fpr", float), fields.many("tpr", float)
        if not fpr or tpr is None:
            return None
        if len(fpr) != len(tpr):
            raise DataError(f"{fields.where}: fpr and tpr must be of one length, not {len(fpr)} and {len(tpr)}")
        return Rates(fpr=fpr, tpr=tpr)


@dataclass(frozen=True, kw_only=True)
class FoundAt:
    """The share of members found at a low rate of false alarms, with its interval."""

    fpr: float
    tpr: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Bars:
    """How many members and how many others scored between each two edges."""

    edges: tuple[float, ...]
    members: tuple[int, ...]
    outsiders: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class AttackEntry:
    """One attack on one run."""

    run: str | None
    method: str | None
    attack: str
    auc: float
    auc_low: float | None
    auc_high: float | None
    balanced: float | None
    members: int
    outsiders: int
    at_low_rates: tuple[FoundAt, ...]
    roc: Rates | None
    permitted: Rates | None
    histogram: Bars | None
    exceeds: bool = False
    """Whether it surely did better than the guarantee permits."""
    sentence: str | None = None
    """The verdict on the model, from all attacks together."""


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """One audit of a run, or of a method as such."""

    run: str | None
    method: str | None
    name: str
    verdict: str
    lower: float
    upper: float | None
    """None: nothing is promised."""
    confidence: float
    sentence: str | None = None
    """The verdict in words."""


Told = AttackEntry | AuditEntry


def read_attacks(path: Path) -> list[AttackEntry]:
    """The attacks in a file with one of them or a list."""
    return [_attack(fields) for fields in _objects(path)]


def read_attack_answers(path: Path) -> list[AttackEntry]:
    """The entries in a file that `reticent attack` left."""
    return attack_answers(_objects(path))


def attack_answers(answers: Iterable[Fields]) -> list[AttackEntry]:
    """The entries in answers of an attack: its attacks, the shadows pooled, canaries, the blind baseline."""
    entries = []
    for answer in answers:
        said, beyond = answer.get("sentence", str), answer.many("above_what_is_permitted", str) or ()
        attacks = [_attack(entry) for entry in answer.parts("attacks") or []]
        attacks = [replace(entry, exceeds=entry.attack in beyond) for entry in attacks]
        others = [answer.part(name) for name in ("pooled", "canaries", "blind")]
        all_of_it = [*attacks, *(_attack(entry) for entry in others if entry is not None)]
        entries += [replace(entry, sentence=said) for entry in all_of_it]
    return entries


def read_audits(path: Path) -> list[AuditEntry]:
    """The entries in a file that `reticent audit` left."""
    return audit_answers(_objects(path))


def audit_answers(answers: Iterable[Fields]) -> list[AuditEntry]:
    """The entries in answers of an audit: the run as a whole, and one step of its method by itself."""
    entries = []
    for answer in answers:
        whole = _audit(answer)
        entries.append(whole)
        step = answer.part("step")
        if step is None or step.get("upper", float) is None:
            continue
        lower, upper = step.need("lower", float), step.need("upper", float)
        if (lower, upper) != (whole.lower, whole.upper):
            doubted = any(probe.startswith("step") for probe in answer.many("said_by", str) or ())
            verdict = "contradicted" if doubted else "consistent"
            entries.append(replace(whole, name="one step", verdict=verdict, lower=lower, upper=upper, sentence=None))
    return entries


def _objects(path: Path) -> Iterator[Fields]:
    """What a file with one object or a list of them holds; nothing where there is no file."""
    if path.exists():
        found = read_sealed(path)
        yield from (Fields(one, str(path)) for one in (found if isinstance(found, list) else [found]))


def _attack(fields: Fields) -> AttackEntry:
    heldout, permitted, bars = fields.part("heldout"), fields.part("permitted"), fields.part("histogram")
    return AttackEntry(
        run=fields.get("run", str),
        method=fields.get("method", str),
        attack=fields.need("attack", str),
        auc=fields.need("auc", float),
        auc_low=fields.get("auc_low", float),
        auc_high=fields.get("auc_high", float),
        balanced=None if heldout is None else heldout.need("balanced", float),
        members=fields.need("members", int),
        outsiders=fields.need("outsiders", int),
        at_low_rates=tuple(_found_at(rate) for rate in fields.parts("at_low_rates") or []),
        roc=Rates.of(fields),
        permitted=None if permitted is None else Rates.of(permitted),
        histogram=None if bars is None else _bars(bars),
        exceeds=fields.get("exceeds", bool) or False,
    )


def _found_at(rate: Fields) -> FoundAt:
    fpr, tpr, low, high = (rate.need(name, float) for name in ("fpr", "tpr", "low", "high"))
    return FoundAt(fpr=fpr, tpr=tpr, low=low, high=high)


def _bars(bars: Fields) -> Bars:
    edges, members = bars.many("edges", float) or (), bars.many("members", int) or ()
    outsiders = bars.many("outsiders", int) or ()
    if not len(edges) - 1 == len(members) == len(outsiders):
        raise DataError(f"{bars.where}: between each two edges there must be one count of members and one of others")
    return Bars(edges=edges, members=members, outsiders=outsiders)


def _audit(answer: Fields) -> AuditEntry:
    return AuditEntry(
        run=answer.get("run", str),
        method=answer.get("method", str),
        name=answer.get("name", str) or "audit",
        verdict=answer.need("verdict", str),
        lower=answer.need("lower", float),
        upper=answer.get("upper", float),
        confidence=answer.need("confidence", float),
        sentence=answer.get("sentence", str),
    )
