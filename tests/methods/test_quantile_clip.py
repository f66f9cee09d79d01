"""Quantile clipping: the clip norm goes where it should, on a count that is part of the one answer that is paid for."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent.errors import SettingError
from reticent.inside import Clip, CountedSum, Flat, RoundSettings, Task
from reticent.outside import QuantileClip
from reticent.outside.quantile import LEAST, MOST

Pair = tuple[Tensor, Tensor]


def slopes(lengths: Tensor) -> tuple[nn.Module, Pair]:
    """A model and examples whose gradients are the examples themselves, wherever the model is."""

    class Point(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.at = nn.Parameter(torch.zeros(2))

    directions = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).repeat(len(lengths) // 2, 1)
    return Point(), (directions * lengths[:, None], torch.zeros(len(lengths)))


def slope(model: nn.Module, batch: Pair) -> Tensor:
    return batch[0] @ model.at  # type: ignore[operator]


def run_on(lengths: Tensor, rounds: int, **options: float) -> rt.Run:
    model, examples = slopes(lengths)
    sgd = torch.optim.SGD(model.parameters(), lr=1e-6)
    method = rt.methods.get("quantile_clip", noise_multiplier=2.0, **options)
    return rt.Run(model, sgd, examples, method=method, loss=slope, batch_size=400, rounds=rounds, seed=1, delta=1e-5)


@pytest.mark.parametrize(("quantile", "expected"), [(0.5, 3.0), (0.9, 4.6)])
def test_the_clip_norm_finds_the_quantile_of_the_norms(quantile: float, expected: float) -> None:
    run = run_on(torch.linspace(1.0, 5.0, 2000), 60, quantile=quantile, count_weight=0.5)
    list(run)
    assert run.settings.max_grad_norm == pytest.approx(expected, rel=0.12)


def test_the_plan_is_that_of_dpsgd_whatever_the_clip_norm_does() -> None:
    run = run_on(torch.linspace(1.0, 5.0, 2000), 10)
    list(run)
    plain = rt.methods.plan(rt.methods.dpsgd(noise_multiplier=2.0), size=2000, batch_size=400, rounds=10, delta=1e-5)
    assert run.ledger.tally() == plain.tally()
    assert run.guarantee().epsilon == pytest.approx(plain.guarantee(seeded=True).epsilon)


def test_sum_and_count_together_are_as_long_as_is_charged() -> None:
    """Andrew et al. 2021, theorem 1, with units instead of halves: the gradient has sqrt(1 + w^2) times the noise."""
    settings, model = RoundSettings(100, 10, 3.0, 1.0), nn.Linear(1, 1)
    query = CountedSum(0.5)(Task(model, slope, Flat(model)), Clip(), settings)
    assert query.sensitivity == pytest.approx(3.0 * math.sqrt(1 + 0.5**2))


def test_noise_on_the_count_moves_the_clip_norm_up_as_far_as_down() -> None:
    now = RoundSettings(size=100, batch_size=10, max_grad_norm=1.0, noise_multiplier=1.0)
    for quantile in (0.1, 0.5, 0.9):
        follow, right = QuantileClip(quantile, 0.2), 10 * (1 - quantile)
        for noise in (1.0, 5.0, 30.0, 1e9):
            up, down = (math.log(follow.moved(right + way * noise, now)) for way in (1, -1))
            assert up == pytest.approx(-down)
            assert 0 < up <= 0.2 + 1e-9


@pytest.mark.parametrize(("quantile", "expected"), [(0.9, 4.6), (0.1, 1.4)])
def test_the_clip_norm_stays_at_the_quantile_where_noise_is_half_of_the_count(quantile: float, expected: float) -> None:
    """Cut to what can be counted, noisy counts drive it off: to hundreds and to hundredths in these rounds."""
    model, examples = slopes(torch.linspace(1.0, 5.0, 1000))
    sgd = torch.optim.SGD(model.parameters(), lr=1e-6)
    method = rt.methods.get("quantile_clip", noise_multiplier=2.0, quantile=quantile)
    run = rt.Run(model, sgd, examples, method=method, loss=slope, batch_size=40, rounds=300, seed=1, delta=1e-5)
    found = [math.log(run.settings.max_grad_norm) for _ in run]
    assert sum(found[100:]) / len(found[100:]) == pytest.approx(math.log(expected), abs=0.7)


@pytest.mark.parametrize(("quantile", "end"), [(0.0, LEAST), (1.0, MOST)])
def test_a_clip_norm_that_runs_away_stays_a_number_that_can_be_used(quantile: float, end: float) -> None:
    now = RoundSettings(size=100, batch_size=10, max_grad_norm=1.0, noise_multiplier=1.0)
    for rate in (0.2, 5000.0):
        follow = QuantileClip(quantile, rate)
        for _ in range(300):
            now = replace(now, max_grad_norm=follow.moved(10.0 * quantile, now))
        assert now.max_grad_norm == pytest.approx(end)
        assert CountedSum().unit(now) > 0


def test_without_a_count_it_says_what_to_take() -> None:
    model, examples = slopes(torch.ones(100))
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    blind = replace(rt.methods.dpsgd(noise_multiplier=1.0), gate=QuantileClip())
    run = rt.Run(model, sgd, examples, method=blind, loss=slope, batch_size=10, rounds=2, delta=1e-5)
    with pytest.raises(SettingError, match="CountedSum"):
        list(run)


def test_a_count_that_no_float_can_hold_is_refused_before_anything_is_released() -> None:
    """Infinity with noise is infinity: it would tell for certain that somebody was cut."""
    run = run_on(torch.linspace(1.0, 5.0, 200).repeat(10), 2, count_weight=1e40)
    with pytest.raises(SettingError, match="lower count_weight"):
        list(run)
    assert not run.ledger.tally()
