"""The verdict: which method did best at each budget, and whether the seeds alone could explain it."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.accounting.guarantee import round_up
from reticent.report.names import printed
from reticent.report.statement import percent
from reticent.report.summary import BASELINE, Row


@dataclass(frozen=True)
class Verdict:
    """The best of the methods that prove an epsilon within one budget."""

    epsilon: str
    best: str
    accuracy: str
    sentence: str


def verdicts(rows: list[Row]) -> list[Verdict]:
    """One verdict for each budget at which something was proved."""
    budgets = sorted({row.target_epsilon for row in rows if row.target_epsilon is not None})
    found = [_verdict(rows, budget) for budget in budgets]
    return [verdict for verdict in found if verdict is not None]


def _verdict(rows: list[Row], budget: float) -> Verdict | None:
    entered = [row for row in rows if row.target_epsilon == budget and row.status == "proved" and row.accuracy]
    if not entered:
        return None
    best = max(entered, key=lambda row: row.accuracy.mean if row.accuracy else 0.0)
    assert best.accuracy is not None
    return Verdict(
        round_up(budget).rstrip("0").rstrip("."), printed(best.label), percent(best.accuracy.mean), compared(best)
    )


def compared(row: Row) -> str:
    """How a row stands to DP-SGD at the same budget."""
    if row.label == BASELINE:
        return "No other method here does better at this budget."
    if row.gain is None:
        return "DP-SGD at this budget is missing, so nothing can be said of the gain."
    ahead = f"{100 * row.gain.mean:.1f} points above DP-SGD"
    if row.gain.kind == "single":
        return f"{ahead}, from one seed: no more than a hint."
    if row.gain.low > 0:
        return f"{ahead}, {'in both seeds' if row.gain.kind == 'range' else 'more than chance explains (95 %)'}."
    return f"{ahead}, which {'one of the two seeds contradicts' if row.gain.kind == 'range' else 'may be chance'}."
