"""DPIS: unbiased for every norm total, at most K / N from one example; the printed line 26 is neither."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch
from laws import Law
from torch import Tensor

import reticent as rt
from reticent.accounting import Budget, Gaussian, RenyiFilter, Subsampled
from reticent.accounting.spending import spending_of
from reticent.errors import SettingError
from reticent.inside import ByNorm, Everyone, ImportanceSettings, NormTotal, RoundSettings, UnitDirection, UnitSum
from reticent.inside.dpis import NORM, REACH, remembered
from reticent.outside import NormPlan, Selective

SIZE, BATCH, SPREAD = 40, 8.0, 3.0


@pytest.fixture
def gradients() -> Tensor:
    """Forty gradients with norms from 0.05 to 3: some above the clip norm of 1."""
    rng = torch.Generator().manual_seed(0)
    directions = torch.nn.functional.normalize(torch.randn(SIZE, 6, generator=rng), dim=1)
    return directions * torch.linspace(0.05, 3.0, SIZE)[:, None]


def clipped(gradients: Tensor) -> Tensor:
    return gradients * (1 / gradients.norm(dim=1, keepdim=True)).clamp(max=1.0)


def settings(total: float) -> RoundSettings:
    return ImportanceSettings(SIZE, BATCH, 1.0, 1.0, norm_total=total)


def chances(gradients: Tensor, total: float) -> tuple[Tensor, Tensor]:
    """Both coins of every example, from the code that throws them, when every bound remembered is k times the norm."""
    norms = gradients.norm(dim=1).double()
    reach = SPREAD * norms.clamp(max=1.0)
    first = (BATCH * reach / total).clamp(max=1.0)
    query = UnitSum(SPREAD)(None, UnitDirection(), settings(total))  # type: ignore[arg-type]
    return first, query.chance(norms, reach)


TOTALS = {"none cut": None, "all but few cut": BATCH, "most cut": 1.125 * BATCH}


@pytest.mark.parametrize("total", TOTALS.values(), ids=TOTALS.keys())
def test_unbiased_and_never_longer_than_promised(gradients: Tensor, total: float | None) -> None:
    norms = clipped(gradients).norm(dim=1).double()
    total = float(norms.sum()) if total is None else total
    first, second = chances(gradients, total)
    assert (second <= 1 + 1e-9).all()
    inclusion = first * second
    assert torch.allclose(inclusion, BATCH * norms / total)
    bound = UnitDirection()
    adds = gradients * bound.weights(gradients.norm(dim=1), settings(total))[:, None]
    assert torch.allclose(adds.norm(dim=1), torch.full((SIZE,), bound.sensitivity(settings(total))), rtol=1e-5)
    mean = (inclusion[:, None] * adds).sum(0) / BATCH
    assert torch.allclose(mean, clipped(gradients).double().mean(0), atol=1e-6)


def test_the_printed_line_26_is_wrong_by_the_batch_size(gradients: Tensor) -> None:
    """(1/b) sum g / (N q p): q p contains b already, so the signal is b times too small."""
    norms = clipped(gradients).norm(dim=1).double()
    total = float(norms.sum())
    first, second = chances(gradients, total)
    literal = clipped(gradients) / (SIZE * first * second)[:, None]
    mean = ((first * second)[:, None] * literal).sum(0) / BATCH
    target = clipped(gradients).double().mean(0)
    assert float(mean @ target / (target @ target)) == pytest.approx(1 / BATCH)


def test_without_the_repair_a_cut_first_coin_lets_an_example_weigh_more(gradients: Tensor) -> None:
    """Weights 1 / (q p) with p = norm / bound, as printed, when q was cut to 1: longer than K / N."""
    norms = clipped(gradients).norm(dim=1).double()
    total, reach = BATCH, SPREAD * norms
    first = (BATCH * reach / total).clamp(max=1.0)
    printed = BATCH / (SIZE * first * (norms / reach)) * norms
    assert float(printed.max()) > UnitDirection().sensitivity(settings(total)) * 1.5


def test_real_draws_agree(gradients: Tensor) -> None:
    law, draws = Law(gradients), 600
    norms = clipped(gradients).norm(dim=1).double()
    now = settings(float(norms.sum()))
    remembered(law.vault.memory, len(law.vault), now, SPREAD)[REACH].copy_(SPREAD * norms)
    total, seen = torch.zeros(6, dtype=torch.float64), []
    for number in range(draws):
        with law.vault.round(number):
            draw = law.vault.draw(ByNorm(SPREAD), now)
            value = law.vault.ask(UnitSum(SPREAD)(law.task, UnitDirection(), now), draw)._value
        total += value.double() / BATCH
        seen.append(value.norm().item())
    adds = gradients.double() * (now.norm_total / SIZE / gradients.norm(dim=1).double())[:, None] / BATCH
    chance = BATCH * norms / now.norm_total
    error = ((chance * (1 - chance))[:, None] * adds.square()).sum(0).div(draws).sqrt()
    assert ((total / draws - clipped(gradients).double().mean(0)).abs() / error).max() < 5
    assert torch.allclose(law.vault.memory[NORM], gradients.norm(dim=1).double(), atol=1e-5)


def test_number_taking_part_concentrates_at_the_batch_size(gradients: Tensor) -> None:
    norms = clipped(gradients).norm(dim=1).double()
    for factor in (1.0, 1.5):
        first, second = chances(gradients, factor * float(norms.sum()))
        assert float((first * second).sum()) == pytest.approx(BATCH / factor)


def test_the_charged_rate_is_the_largest_chance(gradients: Tensor) -> None:
    now = settings(20.0)
    first, second = chances(gradients, 20.0)
    event = ByNorm(SPREAD).amplify(Gaussian(3.0), now)
    assert event == Subsampled(BATCH / 20.0, Gaussian(3.0))
    assert float((first * second).max()) <= BATCH / 20.0 + 1e-12


def test_an_example_never_looked_at_counts_fully() -> None:
    law = Law(torch.ones(10, 2))
    with law.vault.round(0):
        sealed = law.vault.ask(NormTotal(law.settings, 0.5), law.vault.draw(Everyone(), law.settings))
    assert float(sealed._value) == 5.0
    assert sealed.sensitivity == 0.5


def run(blobs: tuple[Tensor, Tensor], **options: object) -> rt.Run:
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 2)
    method = rt.methods.dpis(max_grad_norm=0.5, **options)  # type: ignore[arg-type]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    return rt.Run(net, optimizer, blobs, method=method, batch_size=20, epochs=4, budget=Budget(3.0, 1e-5), seed=0)


@pytest.mark.parametrize("options", [{}, {"norms": "refresh"}, {"adaptive_clip": True, "norm_noise": 0.1}])
def test_the_filter_is_spent_to_the_end_and_never_passed(
    blobs: tuple[Tensor, Tensor], options: dict[str, object]
) -> None:
    made = run(blobs, **options)
    list(made)
    allowance = made.plan.allowance()
    for entry in made.ledger:
        assert allowance.covers(entry.event)
        allowance.spend(entry.event)
    share = allowance.spent / allowance.limit  # type: ignore[attr-defined]
    assert 0.5 < share <= 1
    assert made.guarantee().epsilon == 3.0
    assert "filter" in made.guarantee().why


def test_the_clip_norm_follows_the_norms(blobs: tuple[Tensor, Tensor]) -> None:
    made = run(blobs, adaptive_clip=True, norm_noise=0.1)
    clips = [made.settings.max_grad_norm for _ in made]
    assert clips[0] == 0.5
    assert len(set(clips)) > 1
    assert all(0.05 * 0.5 <= clip <= 4 * 0.5 for clip in clips)


def test_selection_on_top_is_refused(blobs: tuple[Tensor, Tensor]) -> None:
    from dataclasses import replace

    made = replace(rt.methods.dpis(), gate=Selective())
    net = torch.nn.Linear(4, 2)
    with pytest.raises(SettingError, match="no proof covers"):
        rt.Run(
            net,
            torch.optim.SGD(net.parameters()),
            blobs,
            method=made,
            batch_size=20,
            epochs=1,
            budget=Budget(3.0, 1e-5),
        )
    assert math.isfinite(made.max_grad_norm)


def test_nobody_drawn_is_an_answer_too() -> None:
    law = Law(torch.ones(10, 2))
    now = ImportanceSettings(10, 1e-12, 1.0, 1.0, norm_total=10.0)
    with law.vault.round(0):
        sealed = law.vault.ask(UnitSum()(law.task, UnitDirection(), now), law.vault.draw(ByNorm(), now))
    assert torch.equal(sealed._value, torch.zeros(2))


def planned(**more: Any) -> rt.methods.Plan:
    return rt.methods.plan(
        rt.methods.dpis(**more.pop("options", {})),
        size=6000,
        batch_size=600,
        epochs=5,
        budget=Budget(2.0, 1e-5),
        **more,
    )


def test_what_was_released_before_comes_out_of_the_same_budget() -> None:
    """Statistics, a centre: the filter has so much less for the run, and the epsilon is for both."""
    events = (Gaussian(8.0), Gaussian(8.0), Gaussian(20.0))
    alone, after = planned(), planned(already=events)
    assert alone.price.epsilon == after.price.epsilon == 2.0
    assert after.settings.noise_multiplier > alone.settings.noise_multiplier
    allowance = after.allowance()
    assert isinstance(allowance, RenyiFilter)
    assert allowance.spent == pytest.approx(sum(allowance.cost(event) for event in events))
    both = spending_of(events) + after.spending(declared=True)
    assert both.price(1e-5).epsilon == pytest.approx(2.0)
    with pytest.raises(SettingError, match="norm sums"):
        planned(already=(Gaussian(1.0),))


def test_the_whole_schedule_fits_after_what_was_released_before() -> None:
    """The plan's last noise uses up what is left, and no more: the filter of a run would refuse it."""
    control = planned(already=(Gaussian(8.0),), options={"size_noise": 0.02}).method.control
    assert isinstance(control, NormPlan)
    assert control.plan is not None
    found = control.plan.filter()
    assert found.spent == pytest.approx(control.plan.spent_apart)
    control.plan.schedule([1.0, 0.9, 0.8, 0.7, 0.6])  # raises if a step passes the filter


def test_a_noisy_number_of_examples_is_charged_once_and_scales_the_steps(blobs: tuple[Tensor, Tensor]) -> None:
    made = run(blobs, size_noise=0.1)
    for _ in made:
        pass
    charged = Counter(entry.event for entry in made.ledger)
    assert charged[Gaussian(0.1 * made.plan.settings.size)] == 1
    scaled = ImportanceSettings(100, 10, 1.0, 1.0, norm_total=50.0, counted=200.0)
    assert UnitDirection().sensitivity(scaled) == 0.25


@pytest.mark.parametrize("external", [1.0, 6.0])
def test_the_external_clip_norm_limits_the_clip_norm(external: float, blobs: tuple[Tensor, Tensor]) -> None:
    made = run(blobs, adaptive_clip=True, norm_noise=0.1, growth=100.0, external_clip=external)
    norms = [made.settings.max_grad_norm for _ in made]
    assert max(norms) == pytest.approx(external * norms[0])
