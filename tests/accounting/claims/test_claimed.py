"""The papers' claims, computed as they do."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.accounting import Gaussian, Subsampled, curve
from reticent.accounting.claims.claimed import ORDERS, REFUTED, dpsur, sa_dpsgd
from reticent.accounting.renyi.conversions import to_epsilon

DELTA = 1e-5


def step(batch: float, size: float, noise: float) -> Subsampled:
    return Subsampled(batch / size, Gaussian(noise))


@pytest.mark.each("claims", "dataset")
def test_dpsur_claims(row: dict) -> None:
    """The orders of the paper's code reproduce the published numbers of updates, and the claims."""
    (batch, size), (test_batch, _) = row["rate"], row["test_rate"]
    for target, noise, test_noise, accepted, expected in zip(
        (1, 2, 3, 4), row["noise"], row["test_noise"], row["accepted"], row["claimed"], strict=True
    ):
        parts = step(batch, size, noise), step(test_batch, size, test_noise)
        claim = dpsur(*parts, accepted, DELTA, orders="code")
        assert claim.epsilon == pytest.approx(expected, abs=1e-3)
        assert (claim.refuted, claim.text) == (True, REFUTED)
        statistics = [Gaussian(8.0)] * 2 if row["normalised"] else []
        with_statistics = [
            dpsur(*parts, accepted + more, DELTA, orders="code", statistics=statistics).epsilon for more in (0, 2)
        ]
        assert with_statistics[0] <= target < with_statistics[1] + 6e-3
        assert claim.epsilon <= dpsur(*parts, accepted, DELTA).epsilon


def test_the_two_ways_to_read_the_orders() -> None:
    assert ORDERS["paper"].tolist() == list(range(2, 65))
    assert len(ORDERS["code"]) == 99 + 53 + 3
    assert ORDERS["code"][[0, 98, 99, 151, 152, 154]].tolist() == [1.1, 10.9, 11, 63, 128, 512]


@pytest.mark.each("annealed", "whole")
def test_sa_dpsgd_claims(row: dict, golden) -> None:
    setting = next(entry for entry in golden("annealed")["setting"] if entry["name"] == row["name"])
    event = step(*setting["rate"], setting["noise"])
    claim = sa_dpsgd(event, row["accepted"], DELTA)
    assert claim.epsilon == pytest.approx(row["claimed"], abs=1e-3)
    assert claim.epsilon <= 3 < sa_dpsgd(event, row["accepted"] + 1, DELTA).epsilon
    newer, _ = to_epsilon(ORDERS["paper"], row["accepted"] * curve(event, ORDERS["paper"]), DELTA)
    assert newer == pytest.approx(row["newer"], abs=1e-3)


def test_as_printed_the_formula_gives_something_else() -> None:
    """SA-DPSGD's equation lacks the logarithm; nobody computed with it."""
    orders = ORDERS["paper"]
    for batch, size, noise, accepted, printed in [
        (512, 60000, 1.23, 4698, 366), (2048, 60000, 2.15, 1157, 47.9), (1024, 50000, 1.54, 1435, 89.7),
    ]:  # fmt: skip
        moments = np.exp(np.minimum((orders - 1) * curve(step(batch, size, noise), orders), 700))
        literal = accepted * moments / (orders - 1) + np.log(1 / DELTA) / (orders - 1)
        assert literal.min() == pytest.approx(printed, rel=5e-3)
