"""PD-SGD: the pass rate is q(d), the seed counts, and a poisoned batch is dropped."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from laws import Law
from scipy.stats import norm

from reticent.errors import SettingError
from reticent.experiments.measures import of_uses
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import train
from reticent.inside import AsItIs, BatchGradient, Clip, FixedNoise, Partition, RoundSettings
from reticent.methods.papers.pd_sgd import pd_sgd
from reticent.outside import PlausibleDeniability, RandomRejection

TRIALS = 800


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
    found = passed(law, PlausibleDeniability(0.5, 1.0, needed=5), trials=400)
    assert abs(found - 0.9) <= 4 * math.sqrt(0.09 / 400)


def test_poisoned_examples_stay_together_and_all_others_are_mixed() -> None:
    settings, rng = RoundSettings(100, 20, 1.0, 0.0), np.random.default_rng(0)
    draws = [Partition(poison=0.25).draw(settings, 100, rng, {}) for _ in range(200)]
    parts = [[draw._index, *draw._others] for draw in draws]
    for split in parts:
        assert sorted(np.concatenate(split).tolist()) == list(range(100))
        assert [sum(one < 5 for one in part) for part in split].count(5) == 1
    seeds = sum(0 in draw._index for draw in draws)
    assert abs(seeds / 200 - 0.2) <= 4 * math.sqrt(0.16 / 200)


def test_poison_flips_labels_and_is_rejected_more_often(tmp_path: Path) -> None:
    """The paper's Figure 3: the batch that holds them fails the test, the others pass."""
    settings = {"noise_std": 0.05, "gamma": 30.0, "needed": 4, "poison": 0.5}
    recipe = Recipe(data="digits", model="linear", method="pd_sgd", options=settings, seed=0)
    recipe = replace(recipe, batch_size=140.0, lr=0.1, epochs=8.0, private_diagnostics=True)
    train(recipe, tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "private" / "diagnostics.jsonl").read_text().splitlines()]
    uses = {name: dict(pairs) for name, pairs in lines[-1]["uses"].items()}
    drawn, kept = uses["drawn"][0], uses["kept"].get(0, 0)
    assert all(uses["drawn"][one] == drawn for one in range(70)), "the first seventy are drawn together"
    others = sum(line["kept"] for line in lines) - kept, len(lines) - drawn
    assert kept / drawn < 0.5 * others[0] / others[1]
    assert of_uses(lines)["rejected_poisoned"] == pytest.approx(100 * (1 - kept / drawn))
    assert of_uses(lines)["rejected_others"] == pytest.approx(100 * (1 - others[0] / others[1]))


def test_without_noise_and_test_it_is_sgd() -> None:
    """Every batch is kept, and the released gradient is the batch's own."""
    plain = pd_sgd(ablation="sgd")
    assert isinstance(plain.noise(1.0), AsItIs)
    assert plain.gate == RandomRejection(0.0)


@pytest.mark.parametrize("poison", [-0.1, 1.0, math.nan])
def test_poison_is_a_share_of_a_batch(poison: float) -> None:
    with pytest.raises(SettingError, match="share of a batch"):
        pd_sgd(poison=poison)
