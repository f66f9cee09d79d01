"""Summary: runs that differ only in their seed become one row, with a mean and an interval."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any, Literal

from scipy.special import stdtrit

Record = dict[str, Any]
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


def summarise(runs: Iterable[Record]) -> list[Row]:
    """One row for each label and budget, in the order of their first run."""
    groups: dict[tuple[str, float | None], list[Record]] = {}
    for run in runs:
        groups.setdefault((run["label"], run["target_epsilon"]), []).append(run)
    baselines = {
        (run["target_epsilon"], run["seed"]): run["accuracy"] for run in _finished(groups) if run["label"] == BASELINE
    }
    return [_row(group, baselines) for group in groups.values()]


def _finished(groups: dict[tuple[str, float | None], list[Record]]) -> list[Record]:
    return [run for group in groups.values() for run in group if run["status"] == "done"]


def _row(group: list[Record], baselines: dict[tuple[float | None, int], float | None]) -> Row:
    done = [run for run in group if run["status"] == "done"]
    first = (done or group)[0]
    guarantee = first.get("guarantee") or {}
    accuracies = [run["accuracy"] for run in done if run["accuracy"] is not None]
    gains = [
        run["accuracy"] - before
        for run in done
        if (before := baselines.get((run["target_epsilon"], run["seed"]))) is not None and run["accuracy"] is not None
    ]
    epsilons = [run["epsilon"] for run in done]
    return Row(
        label=first["label"],
        method=first["method"],
        kind=first["kind"],
        target_epsilon=first["target_epsilon"],
        epsilon=max(epsilons) if epsilons and None not in epsilons else None,
        claimed_epsilon=max((run["claimed_epsilon"] for run in done if run.get("claimed_epsilon")), default=None),
        delta=first.get("delta"),
        status=guarantee.get("status", "failed"),
        accountant=guarantee.get("accountant", ""),
        route=guarantee.get("route", ""),
        why=guarantee.get("why", ""),
        seeds=len(done),
        failed=len(group) - len(done),
        accuracy=Spread.of(accuracies) if accuracies else None,
        gain=Spread.of(gains) if gains and first["label"] != BASELINE and guarantee["status"] == "proved" else None,
        rounds=_mean(done, "rounds"),
        kept_share=fmean(run["kept"] / run["rounds"] for run in done) if done else None,
        cpu_seconds=_mean(done, "cpu_seconds"),
        wall_seconds=_mean(done, "wall_seconds"),
    )


def _mean(runs: list[Record], name: str) -> float | None:
    values = [run[name] for run in runs if run.get(name) is not None]
    return fmean(values) if values else None


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


def _flat(row: Row) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in asdict(row).items():
        if _is_spread(name):
            flat |= {f"{name}_{part}": inner for part, inner in (value or {}).items()}
        else:
            flat[name] = value
    return flat
