"""Every stage checks its own numbers when it is made: what is declared of it holds for what it does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

import reticent as rt
from reticent import inside, outside
from reticent.accounting import Budget
from reticent.errors import SettingError
from reticent.inside import BestOf, Clip, GradientSum, RoundSettings
from reticent.inside.bounds import enforced

WRONG: list[Callable[[], object]] = [
    lambda: inside.Normalise(-0.5),
    lambda: inside.Normalise(0.0),
    lambda: inside.Normalise(math.nan),
    lambda: inside.GaussianNoise(-1.0),
    lambda: inside.GaussianNoise(math.inf),
    lambda: inside.AcceptanceCoin(0.5, 0.4, 0.1),
    lambda: BestOf(0.0),
    lambda: inside.ByNorm(0.5),
    lambda: inside.UnitSum(5.0, 0.0),
    lambda: outside.NoisyTest(noise_multiplier=0.0),
    lambda: outside.NoisyTest(limit=-1.0),
    lambda: outside.NoisyTest(threshold=math.nan),
    lambda: outside.SmoothTest(low=0.0),
    lambda: outside.SmoothTest(low=0.9, high=0.8),
    lambda: outside.SmoothTest(influence=-0.1),
    lambda: outside.Selective(cap=0),
    lambda: outside.Selective(hidden_attempts=True, seen_attempts=True),
    lambda: outside.PrivateAnswer(noise_multiplier=0.0),
    lambda: outside.Annealed(outside.PrivateAnswer(), cooling=-1.0),
    lambda: outside.Annealed(outside.PrivateAnswer(), max_rejections=-1),
    lambda: outside.BestLength(choices=1),
    lambda: outside.BestLength(raise_by=0.0),
    lambda: outside.NormPlan(phase=1.5),
    lambda: outside.NormPlan(norm_noise=0.0),
    lambda: outside.TimeDecay(-1.0),
    lambda: outside.ExponentialDecay(math.inf),
    lambda: outside.StepDecay(1.5),
    lambda: outside.StepDecay(0.5, 0),
    lambda: outside.PolynomialDecay(end=0.0),
    lambda: outside.RandomRejection(1.5),
    lambda: outside.After(-1, outside.Open()),
    lambda: outside.After(3, outside.BestLength()),
    lambda: rt.methods.dpsgd(max_grad_norm=0.0),
    lambda: rt.methods.dpsgd(noise_multiplier=math.nan),
    lambda: rt.methods.auto_s(stability=-0.5),
]


@pytest.mark.parametrize("make", WRONG, ids=range(len(WRONG)))
def test_wrong_numbers_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(SettingError):
        make()


class Nothing(Clip):
    """A bound that bounds nothing, and says otherwise."""

    def weights(self, norms: torch.Tensor, settings: RoundSettings) -> torch.Tensor:
        return torch.full_like(norms, 5000.0)


def test_no_bound_weighs_more_than_it_promises() -> None:
    settings = RoundSettings(100, 10, 0.5, 1.0)
    norms = torch.tensor([0.0, 1e-30, 0.1, 1.0, 1e30, math.inf, math.nan])
    for bound in (Nothing(), Clip(), inside.Normalise()):
        weights = enforced(bound, norms, settings)
        lengths = torch.nan_to_num(norms, nan=0.0, posinf=0.0).double() * weights.double()
        assert (lengths <= bound.sensitivity(settings) * (1 + 1e-6)).all()
        assert weights.isfinite().all()


def test_noise_names_the_queries_that_it_serves() -> None:
    """A noisy maximum of a gradient's coordinates was planned as if one example moved them all the same way."""
    method = replace(rt.methods.dpsgd(noise_multiplier=1.0), noise=BestOf)
    with pytest.raises(SettingError, match="BestOf is not proved for GradientSum"):
        rt.methods.plan(method, size=100, batch_size=10, rounds=3, delta=1e-5)


def test_stages_of_others_are_named_in_the_guarantee() -> None:
    class Mine(GradientSum):
        pass

    Mine.__module__ = "mine"
    method = replace(rt.methods.dpsgd(noise_multiplier=1.0), query=Mine)
    plan = rt.methods.plan(method, size=100, batch_size=10, rounds=3, delta=1e-5)
    assert "rests on the promise of Mine: its sensitivity" in plan.guarantee(seeded=False).assumptions
    ours = rt.methods.plan(rt.methods.dpsgd(noise_multiplier=1.0), size=100, batch_size=10, rounds=3, delta=1e-5)
    assert not any("rests on" in text for text in ours.guarantee(seeded=False).assumptions)


def test_two_stages_cannot_both_plan_the_budget() -> None:
    both = replace(rt.methods.dpis(), gate=outside.BestLength())
    with pytest.raises(SettingError, match="both plan the whole budget"):
        rt.methods.plan(both, size=100, batch_size=10, rounds=10, budget=Budget(3.0, 1e-5))
    fading = replace(rt.methods.dpis(), control=outside.ExponentialDecay(), noise_multiplier=1.0)
    with pytest.raises(SettingError, match="released sum of norms"):
        rt.methods.plan(fading, size=100, batch_size=10, rounds=10, delta=1e-5)


def test_a_part_of_a_stage_is_named_too() -> None:
    """A test of the user's own inside our gate says how often it passes, and nobody has checked that."""

    class Mine(outside.NoisyTest):
        def acceptance(self) -> tuple[float, float]:
            return 0.499, 0.501

    Mine.__module__ = "mine"
    method = replace(rt.methods.dpsgd(noise_multiplier=1.0), gate=outside.Selective(Mine(batch_size=10)))
    plan = rt.methods.plan(method, size=100, batch_size=10, rounds=3, delta=1e-5)
    assert "rests on the promise of Mine: its charge" in plan.guarantee(seeded=False).assumptions
