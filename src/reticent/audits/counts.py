"""Counts: how often an auditor was right and wrong at a threshold that does not depend on the counted runs."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.attacks.intervals import Floats, rate_at_least, rate_at_most
from reticent.errors import SettingError


@dataclass(frozen=True)
class Counts:
    """Of `absent` runs without the canary and `present` runs with it, how many were called "present"."""

    false_positives: int
    absent: int
    true_positives: int
    present: int

    def fpr_at_most(self, alpha: float) -> float:
        """An upper bound on the false positive rate, wrong with chance at most `alpha`."""
        return rate_at_most(self.false_positives, self.absent, alpha)

    def fnr_at_most(self, alpha: float) -> float:
        """An upper bound on the false negative rate, wrong with chance at most `alpha`."""
        return rate_at_most(self.present - self.true_positives, self.present, alpha)

    def tpr_at_least(self, alpha: float) -> float:
        """A lower bound on the true positive rate, wrong with chance at most `alpha`."""
        return rate_at_least(self.true_positives, self.present, alpha)


@dataclass(frozen=True, eq=False)
class Evidence:
    """One number for each run without and with the canary; larger should mean "present"."""

    absent: Floats
    present: Floats

    def __post_init__(self) -> None:
        if min(len(self.absent), len(self.present)) < 2:
            raise SettingError("an audit needs two runs or more on each side")

    def count(self, threshold: float) -> Counts:
        """How many runs of each side reach the threshold.

        >>> import numpy as np
        >>> Evidence(np.array([0.0, 2.0]), np.array([1.0, 3.0])).count(1.0)
        Counts(false_positives=1, absent=2, true_positives=2, present=2)
        """
        wrong, right = int((self.absent >= threshold).sum()), int((self.present >= threshold).sum())
        return Counts(wrong, len(self.absent), right, len(self.present))

    def split(self, share: float = 0.5) -> tuple[Evidence, Evidence]:
        """The first `share` of the runs to choose thresholds on, and the rest to certify with."""
        cut_absent, cut_present = int(len(self.absent) * share), int(len(self.present) * share)
        first = Evidence(self.absent[:cut_absent], self.present[:cut_present])
        return first, Evidence(self.absent[cut_absent:], self.present[cut_present:])
