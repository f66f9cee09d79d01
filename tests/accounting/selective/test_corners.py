"""The chances of acceptance a noisy test has."""

from __future__ import annotations

import pytest

from reticent.accounting.selective.corners import noisy_test


def test_acceptance_chances() -> None:
    """beta = -1: the best candidate is kept half the time; the ratio to the worst one depends on the noise."""
    for noise, k in {1.3: 2.2637, 1.2: 2.4712, 1.1: 2.7525, 1.0: 3.1515, 0.9: 3.7521, 0.8: 4.7326}.items():
        attempt = noisy_test(0.1, 1.0, 0.1, noise, -1.0)
        assert attempt.accept_high == 0.5
        assert attempt.accept_high / attempt.accept_low == pytest.approx(k, abs=5e-5)
