"""Parts of a result: what is told of the guarantee, the classes, the ledger, the effort and the machine of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import get_args

from reticent.accounting import Guarantee
from reticent.accounting.guarantee import Status
from reticent.errors import DataError, UnknownName
from reticent.results.fields import Fields


def read_guarantee(said: Fields) -> Guarantee:
    """The guarantee that `Guarantee.to_json` wrote, every field of the right kind.

    >>> read_guarantee(Fields(Guarantee("proved", 3.0, 1e-5).to_json(), "result.json")).epsilon
    3.0
    """
    said.only(Guarantee("none", math.inf, 0.0).to_json())
    said.choice("status", get_args(Status))
    for name in {"status", "adjacency", "unit", "accountant", "route", "route_name", "why"} & {"status", *said.data}:
        said.need(name, str)
    said.need("delta", float)
    for name in ("epsilon", "order", "rdp", "pld"):
        said.get(name, float)
    for name in ("covers", "excludes", "assumptions"):
        said.many(name, str)
    said.get("seeded", bool)
    if (claim := said.part("as_claimed")) is not None:
        claim.get("epsilon", float), claim.get("refuted", bool), claim.get("text", str)
    try:
        return Guarantee.from_json({"epsilon": None, "route": "", **said.data})
    except UnknownName as error:
        raise DataError(f"{said.where}: {error}") from error


@dataclass(frozen=True, kw_only=True)
class ClassAccuracy:
    """How a model does on the test examples of one class."""

    number: int
    examples: int
    accuracy: float

    def to_json(self) -> dict[str, object]:
        """The row as plain data."""
        return {"class": self.number, "examples": self.examples, "accuracy": self.accuracy}

    @staticmethod
    def from_json(row: Fields) -> ClassAccuracy:
        """The row that `to_json` wrote."""
        number, examples = row.need("class", int), row.need("examples", int)
        return ClassAccuracy(number=number, examples=examples, accuracy=row.need("accuracy", float))


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How a model did on public examples as the rounds went by."""

    of: str
    """accuracy or loss."""
    points: tuple[tuple[int, float], ...]
    on: str = ""
    """Which examples, where they are not validation examples."""
    epsilon: tuple[tuple[int, float], ...] = ()
    """What had been spent at each point, if the run had been planned that long; no guarantee."""
    claimed: tuple[tuple[int, float], ...] = ()
    """The same by the paper's own rule, where it has one."""

    def to_json(self) -> dict[str, object]:
        """The curve as plain data."""
        curves = {"points": self.points, "epsilon": self.epsilon, "claimed": self.claimed}
        on = {"on": self.on} if self.on else {}
        told = {name: [list(point) for point in curve] for name, curve in curves.items() if curve or name == "points"}
        return {"of": self.of, **on, **told}

    @staticmethod
    def from_json(curve: Fields) -> Learning:
        """The curve that `to_json` wrote."""

        def pairs(name: str) -> tuple[tuple[int, float], ...]:
            return tuple((int(number), value) for number, value in curve.pairs(name) or ())

        return Learning(
            of=curve.choice("of", ("accuracy", "loss")) or "accuracy",
            points=pairs("points"),
            on=curve.get("on", str) or "",
            epsilon=pairs("epsilon"),
            claimed=pairs("claimed"),
        )


@dataclass(frozen=True, kw_only=True)
class LedgerFacts:
    """How many releases a ledger holds, and the fingerprint of its file."""

    entries: int
    sha256: str

    def to_json(self) -> dict[str, object]:
        """The facts as plain data."""
        return asdict(self)

    @staticmethod
    def from_json(facts: Fields) -> LedgerFacts:
        """The facts that `to_json` wrote."""
        return LedgerFacts(entries=facts.need("entries", int), sha256=facts.need("sha256", str))


@dataclass(frozen=True, kw_only=True)
class PlainSettings:
    """How a network was trained without privacy; what its recipe says of optimizer and batch is not for it."""

    name: str
    lr: float
    batch_size: int | None = None
    schedule: str | None = None

    def to_json(self) -> dict[str, object]:
        """The settings as plain data."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @staticmethod
    def from_json(settings: Fields) -> PlainSettings:
        """The settings that `to_json` wrote."""
        return PlainSettings(
            name=settings.need("name", str),
            lr=settings.need("lr", float),
            batch_size=settings.get("batch_size", int),
            schedule=settings.get("schedule", str),
        )


@dataclass(frozen=True, kw_only=True)
class Effort:
    """What a run took: times are those of the last process that worked on it."""

    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    resumed: bool = False
    warnings: tuple[str, ...] = ()
    finished: str | None = None

    def to_json(self) -> dict[str, object]:
        """The effort as plain data."""
        return asdict(self) | {"warnings": list(self.warnings)}

    @staticmethod
    def from_json(told: Fields) -> Effort | None:
        """The effort that stands among the fields of a result, if it does."""
        if not told.data.keys() & {"wall_seconds", "cpu_seconds", "finished"}:
            return None
        return Effort(
            wall_seconds=told.get("wall_seconds", float),
            cpu_seconds=told.get("cpu_seconds", float),
            resumed=told.get("resumed", bool) or False,
            warnings=told.many("warnings", str) or (),
            finished=told.get("finished", str),
        )


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a reader needs to repeat a run elsewhere: versions, commit, machine."""

    name: str = ""
    threads: int | None = None
    commit: str | None = None
    versions: Mapping[str, str | None] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """The machine as plain data."""
        return {
            "versions": dict(self.versions),
            "commit": self.commit,
            "machine": self.name,
            "threads": self.threads,
        }

    @staticmethod
    def from_json(told: Fields) -> Machine | None:
        """The machine that stands among the fields of a result, if it does."""
        versions = told.part("versions")
        if versions is None:
            return None
        return Machine(
            name=told.get("machine", str) or "",
            threads=told.get("threads", int),
            commit=told.get("commit", str),
            versions={name: versions.get(name, str) for name in versions.data},
        )
