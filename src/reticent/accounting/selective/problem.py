"""One order and one direction of the search for the worst test: what every corner costs at every node, for any x."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.accounting.events import SelectiveAttempt
from reticent.accounting.renyi.remainder import log_remainder, power_gain
from reticent.accounting.selective.corners import Corners, corners
from reticent.accounting.selective.moments import PairMoments, moments

Array = NDArray[np.float64]

STEEPEST = 300.0
"""The largest order * |log x| that is computed: x^order must leave room below exp(709), where doubles end, for the
other factors. Beyond it a route answers infinity, or looks at nearer x only; the ceilings of renyi.py remain."""


@dataclass(frozen=True, eq=False)
class Problem:
    """The corners of an attempt and the moments of its pair (renyi.py tells how they meet)."""

    attempt: SelectiveAttempt
    corner: Corners
    moments: PairMoments

    @classmethod
    def of(cls, attempt: SelectiveAttempt, order: float, sign: int) -> Problem:
        """`sign` 1: the record is removed (P is present over Q absent), -1: it is added."""
        found = moments(attempt.rate, attempt.noise_multiplier, order, sign)
        return cls(attempt, corners(attempt)[0 if sign == 1 else 1], found)

    @property
    def order(self) -> float:
        """The Renyi order."""
        return self.moments.order

    @property
    def log_swing(self) -> Array:
        """log(a' / a) at every corner."""
        return np.asarray(np.log(self.corner.after / self.corner.before))

    @property
    def log_unit(self) -> float:
        """The logarithm of the unit in which `numerators` are given, so that nothing overflows."""
        return self.moments.scale + self.order * max(0.0, float(self.log_swing.max()))

    def numerators(self, log_x: float) -> Array:
        """a g(r a' / (a x)) times the mass, for each corner and node."""
        order, log_k = self.order, self.log_swing - log_x
        power = self.corner.before * np.exp(order * log_k + self.moments.scale - self.log_unit)
        constant = self.corner.before * np.exp(log_remainder(log_k, order) - self.log_unit)
        slope = self.corner.before * order * power_gain(log_k, order, -self.log_unit)
        return self._mix(constant, slope) + power[:, None] * self.moments.remainder

    def denominators(self, log_x: float) -> Array:
        """a (1 + order (r a' / (a x) - 1)) times the mass, for each corner and node."""
        k = np.exp(self.log_swing - log_x)
        constant = self.corner.before * (1 + self.order * (k - 1))
        return self._mix(constant, self.corner.before * self.order * k)

    def _mix(self, constant: Array, slope: Array) -> Array:
        return np.asarray(constant[:, None] * self.moments.mass + slope[:, None] * self.moments.shift)
