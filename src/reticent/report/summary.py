"""Summary: runs that differ only in their seed become one row, with a mean and an interval."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Literal

from scipy.special import stdtrit

from reticent.results import Result

BASELINE = "dpsgd"


@dataclass(frozen=True)
class Spread:
    """A mean with what the seeds say about it.

    With three seeds or more, Student's 95 % interval; with two, their range: an interval from two values is useless.
    """

    mean: float
    low: float
    high: float
    kind: Literal["t95", "range", "single"]

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        """The spread of some values.

        >>> Spread.of([1.0, 2.0, 3.0])
        Spread(mean=2.0, low=-0.48..., high=4.48..., kind='t95')
        """
        mean = fmean(values)
        if len(values) < 3:
            return Spread(mean, min(values), max(values), "range" if len(values) == 2 else "single")
        half = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / math.sqrt(len(values))
        return Spread(mean, mean - half, mean + half, "t95")


@dataclass(frozen=True)
class Row:
    """All seeds of one method (or variant) at one budget."""

    label: str
    method: str
    kind: str
    target_epsilon: float | None
    epsilon: float | None
    """The largest that was proved for any of the seeds; None: no guarantee."""
    claimed_epsilon: float | None
    """The largest that the paper's rule gives for any of the seeds: no guarantee."""
    delta: float | None
    status: str
    accountant: str
    route: str
    why: str
    seeds: int
    failed: int
    accuracy: Spread | None
    gain: Spread | None
    """Accuracy above DP-SGD at the same budget, seed by seed; only where an epsilon is proved is it a comparison."""
    rounds: float | None
    kept_share: float | None
    cpu_seconds: float | None
    wall_seconds: float | None


def summarise(runs: Iterable[Result]) -> list[Row]:
    """One row for each label and budget, in the order of their first run."""
    groups: dict[tuple[str, float | None], list[Result]] = {}
    for run in runs:
        groups.setdefault((run.label, run.target_epsilon), []).append(run)
    baselines = {
        (run.target_epsilon, run.seed): run.accuracy
        for group in groups.values()
        for run in group
        if run.done and run.label == BASELINE
    }
    return [_row(group, baselines) for group in groups.values()]


def _row(group: list[Result], baselines: dict[tuple[float | None, int | None], float | None]) -> Row:
    done = [run for run in group if run.done]
    first = (done or group)[0]
    guarantee = first.guarantee
    accuracies = _known(run.accuracy for run in done)
    gains = [
        run.accuracy - before
        for run in done
        if (before := baselines.get((run.target_epsilon, run.seed))) is not None and run.accuracy is not None
    ]
    epsilons = _known(run.epsilon for run in done)
    return Row(
        label=first.label,
        method=first.method,
        kind=first.kind,
        target_epsilon=first.target_epsilon,
        epsilon=max(epsilons) if done and len(epsilons) == len(done) else None,
        claimed_epsilon=max((run.claimed_epsilon for run in done if run.claimed_epsilon), default=None),
        delta=first.delta,
        status=guarantee.status if done else "failed",
        accountant=guarantee.accountant,
        route=guarantee.route,
        why=guarantee.why if done else "",
        seeds=len(done),
        failed=len(group) - len(done),
        accuracy=Spread.of(accuracies) if accuracies else None,
        gain=Spread.of(gains) if gains and first.label != BASELINE and guarantee.status == "proved" else None,
        rounds=_mean(run.rounds for run in done),
        kept_share=_mean(run.kept / run.rounds for run in done if run.rounds),
        cpu_seconds=_mean(run.cpu_seconds for run in done),
        wall_seconds=_mean(run.wall_seconds for run in done),
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return fmean(known) if known else None


def to_csv(rows: Sequence[Row]) -> str:
    """The rows as CSV, spreads taken apart into columns.

    >>> to_csv([]).splitlines()[0].split(",")[:3]
    ['label', 'method', 'kind']
    """
    names: list[str] = []
    for field in Row.__dataclass_fields__:
        names += [f"{field}_{part}" for part in ("mean", "low", "high", "kind")] if _is_spread(field) else [field]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_flat(row) for row in rows)
    return text.getvalue()


def _is_spread(field: str) -> bool:
    return field in ("accuracy", "gain")


def _flat(row: Row) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in asdict(row).items():
        if _is_spread(name):
            flat |= {f"{name}_{part}": inner for part, inner in (value or {}).items()}
        else:
            flat[name] = value
    return flat
