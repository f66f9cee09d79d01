"""Checks of sums mixed over rounds: what all rounds together tell of one example is what is charged."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import torch

from reticent.accounting import Gaussian, Laplace, PartInTurn, Subsampled, Unbounded, epsilon
from reticent.audits.toy import Known, examples, known_loss
from reticent.errors import PrivacyWarning
from reticent.inside import Bands, Clip, Cyclic, MixedSum, RoundSettings
from reticent.methods import get, plan
from reticent.run import Run

BANDS, ROUNDS, SIZE, CLIP = 4, 30, 40, 0.5
METHOD = get("band_mf", noise_multiplier=1.0, max_grad_norm=CLIP, bands=BANDS)


def _sealed(norm: float) -> tuple[torch.Tensor, list[object]]:
    """Every sealed answer of a run whose gradients do not depend on the model; and the events."""
    model = Known(4)
    sgd = torch.optim.SGD(model.parameters(), lr=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        run = Run(
            model, sgd, examples(norm, size=SIZE), method=METHOD, loss=known_loss, batch_size=SIZE / BANDS / 2,
            rounds=ROUNDS, delta=1e-5, seed=2,
        )  # fmt: skip
    probe = run.watch()
    list(run)
    return torch.stack([one.sealed for one in probe.openings]), [one.event for one in probe.openings]


def an_example_is_told_of_once_in_a_turn() -> None:
    """Between its rounds, at least as many apart as there are bands, all answers move by the clip norm together."""
    with_it, events = _sealed(5.0)
    without, _ = _sealed(0.0)
    moved = (with_it - without).norm(dim=1)
    touched = np.flatnonzero(moved.numpy() > 1e-6)
    begins = [start for start in touched if start == 0 or moved[start - 1] <= 1e-6 or (start - touched[0]) % BANDS == 0]
    assert len(begins) >= 2, "the canary took part too seldom to tell"
    parts = set()
    for start in begins:
        window = float(moved[start : start + BANDS].square().sum().sqrt())
        assert window <= CLIP * (1 + 1e-5), "a turn tells more than one bounded gradient"
        if start + BANDS <= ROUNDS:
            assert window >= CLIP * (1 - 1e-3), "the canary is not cut: the check is too weak"
        event = events[start]
        assert isinstance(event, PartInTurn)
        parts.add(event.part)
        assert event.inner == Subsampled(0.5, Gaussian(1.0))
    assert len(parts) == 1, "an example was told of in the turns of two parts"
    assert float(moved.square().sum().sqrt()) <= CLIP * len(begins) ** 0.5 * (1 + 1e-5)


def turns_are_charged() -> None:
    """The price is that of DP-SGD at the rate within a part, over as many rounds as part 0 has turns."""
    for rounds, turns in ((30, 8), (32, 8), (33, 9), (1, 1)):
        found = plan(METHOD, size=1000, batch_size=50, rounds=rounds, delta=1e-5).price.epsilon
        expected = epsilon({Subsampled(BANDS * 0.05, Gaussian(1.0)): turns}, 1e-5)
        assert abs(found - expected) <= 1e-9
    odd = {PartInTurn(0, 2, Gaussian(1.0)): 1, PartInTurn(1, 2, Gaussian(1.0)): 3}
    assert abs(epsilon(odd, 1e-5) - epsilon({Gaussian(1.0): 4}, 1e-5)) <= 1e-9


def other_noise_is_not_charged_as_if_it_were_normal() -> None:
    """Of Laplace noise on b rounds the shifts add up as they are, not their squares: no price is known."""
    now = RoundSettings(1000, 50, 1.0, 1.0)
    for event in (Laplace(1.0), Unbounded("no noise")):
        assert math.isinf(epsilon([Cyclic(BANDS).amplify(event, now)], 1e-5))
    assert math.isfinite(epsilon([Cyclic(BANDS).amplify(Gaussian(1.0), now)], 1e-5))


def rounding_over_rounds_is_made_up_for() -> None:
    """As many answers as there are bands are rounded, each by a share of the noise's sensitivity at the most."""
    for bands in (1, 64, 1024):
        query = MixedSum(Bands(bands, rounds=100))(None, Clip(), RoundSettings(1000, 50, CLIP, 1.0))
        assert CLIP + math.sqrt(bands) * 2.0**-12 * query.sensitivity <= query.sensitivity * (1 + 1e-12)


CHECKS: list[Callable[[], None]] = [
    an_example_is_told_of_once_in_a_turn,
    turns_are_charged,
    other_noise_is_not_charged_as_if_it_were_normal,
    rounding_over_rounds_is_made_up_for,
]
