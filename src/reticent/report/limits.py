"""Limits: what a guarantee lets any attacker reach, whatever the attacker knows."""

from __future__ import annotations

import math

from reticent.report.entries import Rates


def caught_at_most(false_alarms: float, epsilon: float | None, delta: float) -> float:
    """The largest share of members any attack finds at this share of false alarms (Kairouz et al. 2015, thm 2.1).

    >>> round(caught_at_most(0.01, 1.0, 1e-5), 4), caught_at_most(0.01, None, 1e-5)
    (0.0272, 1.0)
    """
    if epsilon is None or epsilon > 700:
        return 1.0
    few = math.exp(epsilon) * false_alarms + delta
    many = 1 - math.exp(-epsilon) * (1 - delta - false_alarms)
    return min(1.0, max(0.0, min(few, many)))


def right_at_most(epsilon: float | None, delta: float) -> float:
    """The largest share of right answers to "was this example a member?", asked of as many members as others.

    >>> round(right_at_most(1.0, 1e-5), 3)
    0.731
    """
    if epsilon is None or epsilon > 700:
        return 1.0
    return min(1.0, (math.exp(epsilon) + delta) / (1 + math.exp(epsilon)))


def permitted_curve(epsilon: float | None, delta: float, points: int = 121) -> Rates:
    """The curve no attack may pass, from a false alarm in 100,000 up to all.

    >>> permitted_curve(0.0, 0.0, points=2).fpr
    (1e-05, 1.0)
    """
    rates = tuple(10 ** (-5 * (1 - place / (points - 1))) for place in range(points))
    return Rates(fpr=rates, tpr=tuple(caught_at_most(rate, epsilon, delta) for rate in rates))
