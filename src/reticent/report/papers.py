"""Papers: the numbers that they print, ours beside them, and how many of them come out the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reticent.report.summary import Spread

RULE = (
    "Near is: accuracies and true positive rates within 1 point, AUC and balanced accuracy of attacks within 0.02, "
    "advantages within 0.04, rates of rejection within 5 points, epsilons within 10 %. Times are never near: machines "
    "differ. Means over our seeds are compared."
)
WITHIN = {
    "accuracy": 1.0,
    "auc": 0.02,
    "balanced": 0.02,
    "oracle": 0.02,
    "advantage": 0.04,
    "rejected": 5.0,
}
"""How far a number may be from the printed one and count as the same."""


def near(measure: str, ours: float, printed: float) -> bool:
    """Whether a number of ours counts as the printed one (RULE says when).

    >>> near("accuracy", 97.1, 98.0), near("lira.auc", 0.60, 0.55), near("epsilon", 2.1, 2.0), near("seconds", 1, 1)
    (True, False, True, False)
    """
    kind = measure.partition(".")[2] or measure
    if kind.startswith("seconds"):
        return False
    if kind.startswith("epsilon"):
        most = 0.1 * printed
    else:
        most = WITHIN["accuracy"] if kind.startswith("tpr") else WITHIN.get(kind, 0.0)
    return abs(ours - printed) <= most + 1e-9


@dataclass(frozen=True, kw_only=True)
class Ours:
    """What our runs of a cell gave."""

    spread: Spread
    seeds: int
    epsilon: float | None
    """The largest that is proved for any of the seeds; None: nothing is."""
    claimed_epsilon: float | None
    """The largest that the paper's own rule gives: no guarantee."""


@dataclass(frozen=True, kw_only=True)
class PaperNumber:
    """One number of a table or figure, and ours."""

    row: str
    column: str
    cell: str
    data: str
    measure: str
    printed: float | None
    """None: a plot, or a row of ours."""
    proved: Ours | None
    """At a proved epsilon (or none, where there is none to be had)."""
    claimed: Ours | None
    """With the paper's noise and length."""
    has_claim: bool
    """Whether the entry says what these are; where it does not, the paper claims what is proved."""
    at: float | None
    """Where a chart draws it: at the setting that changes from column to column."""
    changing: str | None
    """The name of that setting."""
    curve: tuple[tuple[float, float], ...]
    """Accuracy in percent against the epsilon spent."""
    stand_in: str | None
    beside: str | None
    why: str | None
    """Why ours differs, if somebody has said."""

    @property
    def own(self) -> Ours | None:
        """Ours by the paper's own accounting."""
        return self.claimed if self.has_claim else self.proved

    @property
    def is_run(self) -> bool:
        """Whether there is a number of ours."""
        return self.own is not None or self.proved is not None

    @property
    def near_own(self) -> bool:
        """Whether it comes out by the paper's own accounting."""
        return self._near(self.own)

    @property
    def near_proved(self) -> bool:
        """Whether it comes out at an epsilon that is proved."""
        return self.proved is not None and self.proved.epsilon is not None and self._near(self.proved)

    @property
    def differs(self) -> bool:
        """Whether a number of ours, by either accounting, is not near the printed one."""
        comparable = self.printed is not None and self.stand_in is None
        return comparable and any(ours is not None and not self._near(ours) for ours in (self.own, self.proved))

    def _near(self, ours: Ours | None) -> bool:
        if ours is None or self.printed is None or self.stand_in is not None:
            return False
        return near(self.measure, ours.spread.mean, self.printed)


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table or figure of a paper, with ours beside it."""

    kind: str
    number: str
    title: str
    main: bool
    notes: tuple[str, ...]
    printed: int
    """How many numbers the paper prints there."""
    entered: int
    """How many of them have an entry."""
    numbers: tuple[PaperNumber, ...]
    left_out: tuple[str, ...]

    @property
    def name(self) -> str:
        """What people call it, such as Table 2."""
        return f"{self.kind.title()} {self.number}"

    def beside(self, number: PaperNumber) -> list[PaperNumber]:
        """The number, and those of rows that stand beside it: the paper's code, or a stand-in."""
        same = (number.column, number.measure)
        others = [one for one in self.numbers if one.beside == number.row and (one.column, one.measure) == same]
        return [number, *others]


@dataclass(frozen=True)
class PaperCounts:
    """How many numbers of a paper are printed, have an entry, were run, and came out the same."""

    printed: int
    entered: int
    run: int
    stand_ins: int
    near_own: int
    near_proved: int

    @staticmethod
    def added(counts: Sequence[PaperCounts]) -> PaperCounts:
        """All of them together.

        >>> PaperCounts.added([PaperCounts(5, 4, 3, 1, 2, 1), PaperCounts(5, 4, 3, 1, 2, 1)]).printed
        10
        """
        lists = [(c.printed, c.entered, c.run, c.stand_ins, c.near_own, c.near_proved) for c in counts]
        return PaperCounts(*(sum(column) for column in zip((0,) * 6, *lists, strict=True)))


@dataclass(frozen=True)
class Paper:
    """A paper, table by table."""

    name: str
    title: str
    tables: tuple[PaperTable, ...]

    @property
    def counts(self) -> PaperCounts:
        """What became of its numbers; a row beside another is counted with it, once."""
        found = [_counted(table) for table in self.tables]
        return PaperCounts.added(found)


def _counted(table: PaperTable) -> PaperCounts:
    groups = [table.beside(one) for one in table.numbers if one.printed is not None and one.beside is None]
    real = [[one for one in group if one.stand_in is None] for group in groups]
    run = [any(one.is_run for one in group) for group in real]
    instead = [any(one.is_run for one in group) and not done for group, done in zip(groups, run, strict=True)]
    return PaperCounts(
        printed=table.printed,
        entered=table.entered,
        run=sum(run),
        stand_ins=sum(instead),
        near_own=sum(any(one.near_own for one in group) for group in real),
        near_proved=sum(any(one.near_proved for one in group if one.beside is None) for group in real),
    )
