"""The remainder against many digits, on all its branches, and the rule that every test's cost is put together by."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from reticent.accounting.renyi.remainder import log_remainder, power_gain

SIZES = np.geomspace(1e-9, 50, 40)


@pytest.mark.parametrize("order", [1.01, 1.1, 2.0, 8.0, 64.0, 512.0])
def test_it_keeps_its_digits_wherever_t_lies(order: float) -> None:
    mpmath.mp.dps = 60
    for log_t in (*SIZES, *-SIZES):
        t = mpmath.exp(mpmath.mpf(float(log_t)))
        exact = mpmath.log(t ** mpmath.mpf(order) - 1 - mpmath.mpf(order) * (t - 1))
        assert float(log_remainder(np.asarray(log_t), order)) == pytest.approx(float(exact), abs=3e-11, rel=1e-13)


def test_the_rule_for_a_reweighed_ratio() -> None:
    """g(k r) = k^order g(r) + g(k) + order (k^order - k) (r - 1)."""
    log_r = np.linspace(-3, 3, 41)
    for order in (1.1, 2.0, 9.5):
        for log_k in (-1.0, -1e-4, 0.0, 1e-6, 0.7):
            g_r, g_k, g_both = (
                np.exp(log_remainder(np.asarray(part), order)) for part in (log_r, log_k, log_k + log_r)
            )
            slope = order * power_gain(np.asarray(log_k), order)
            np.testing.assert_allclose(np.exp(order * log_k) * g_r + g_k + slope * np.expm1(log_r), g_both, rtol=1e-9)
