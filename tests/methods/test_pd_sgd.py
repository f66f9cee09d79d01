"""PD-SGD: the pass rate is q(d), the seed counts, and a poisoned batch is dropped."""

from __future__ import annotations

import math

import pytest
import torch
from laws import Law
from scipy.stats import norm

from reticent.inside import BatchGradient, Clip, FixedNoise, Partition
from reticent.outside import PlausibleDeniability

TRIALS = 3000


def passed(law: Law, gate: PlausibleDeniability, trials: int = TRIALS) -> float:
    kept = 0
    for trial in range(trials):
        with law.vault.round(trial):
            draw = law.vault.draw(Partition(), law.settings)
            sealed = law.vault.ask(BatchGradient(law.task, Clip(), law.settings), draw)
            released = law.vault.release(sealed, FixedNoise(gate.std))
            kept += gate.settle(law.proposal(torch.zeros(2), sealed=sealed, released=released)).kept
    return kept / trials


@pytest.mark.parametrize(("distance", "std", "gamma"), [(1.0, 1.0, 1.0), (2.0, 1.0, 1.0), (0.2, 0.1, 4.0)])
@pytest.mark.parametrize("noisy", [True, False])
def test_pass_rate_is_lemma_1(distance: float, std: float, gamma: float, noisy: bool) -> None:
    """Two batches at a given distance, both needed: q = Phi(u/2 + gamma/u) - Phi(u/2 - gamma/u), u = distance / std."""
    law = Law(torch.tensor([[0.0, 0.0], [distance, 0.0]]), batch_size=1)
    u = distance / std
    expected = float(norm.cdf(u / 2 + gamma / u) - norm.cdf(u / 2 - gamma / u))
    found = passed(law, PlausibleDeniability(std, gamma, needed=2, noisy=noisy))
    assert abs(found - expected) <= 4 * math.sqrt(expected * (1 - expected) / TRIALS)


def test_the_seed_counts_so_one_always_passes() -> None:
    law = Law(torch.tensor([[0.0, 0.0], [1e6, 0.0]]), batch_size=1)
    assert passed(law, PlausibleDeniability(1.0, 1.0, needed=1), trials=50) == 1.0


def test_a_poisoned_batch_is_dropped_and_normal_ones_pass() -> None:
    """Nine batches alike, one far away: dropped exactly when it is the seed."""
    gradients = 0.01 * torch.randn(10, 2, generator=torch.Generator().manual_seed(0))
    gradients[3] = torch.tensor([50.0, 0.0])
    law = Law(gradients, batch_size=1)
    found = passed(law, PlausibleDeniability(0.5, 1.0, needed=5), trials=1000)
    assert abs(found - 0.9) <= 4 * math.sqrt(0.09 / 1000)
