"""The four identities of DPSignAdam, and the response of a sign under noise."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from reticent.inside import Flat, RoundSettings
from reticent.optimizers import Signs
from reticent.outside import Sign

SETTINGS = RoundSettings(100, 10, 1.0, 1.0)
LR, BETA1, EPS = 0.01, 0.9, 1e-8


def trajectory(beta2: float, steps: int = 40) -> tuple[list[Tensor], torch.optim.Adam, list[Tensor]]:
    net = nn.Linear(5, 3)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
    flat, rng = Flat(net), torch.Generator().manual_seed(0)
    adam = torch.optim.Adam(net.parameters(), lr=LR, betas=(BETA1, beta2), eps=EPS)
    places, signs = [flat.vector.clone()], []
    for _ in range(steps):
        signs.append(Sign().apply(torch.randn(len(flat.vector), generator=rng), SETTINGS))
        flat.set_grad(signs[-1])
        adam.step()
        places.append(flat.vector.clone())
    return places, adam, signs


def test_second_moment_is_one() -> None:
    _, adam, _ = trajectory(0.999)
    for state in adam.state.values():
        corrected = state["exp_avg_sq"] / (1 - 0.999 ** state["step"])
        assert torch.allclose(corrected, torch.ones_like(corrected), atol=1e-5)


def test_beta2_does_not_matter() -> None:
    for one, other in zip(trajectory(0.9)[0], trajectory(0.999)[0], strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_it_is_momentum_over_signs() -> None:
    places, _, signs = trajectory(0.999)
    place, average = places[0].clone(), torch.zeros_like(places[0])
    for number, sign in enumerate(signs, start=1):
        average = BETA1 * average + (1 - BETA1) * sign
        place -= LR * average / (1 - BETA1**number) / (1 + EPS)
        assert torch.allclose(place, places[number], atol=1e-6)


def test_first_step_is_the_sign() -> None:
    places, _, signs = trajectory(0.999)
    assert torch.allclose(places[1], -LR * signs[0] / (1 + EPS), atol=1e-8)


@pytest.mark.parametrize(("signal", "mean"), [(0.1, 0.0796556746), (0.5, 0.3829249225), (1.0, 0.6826894921)])
def test_response_to_a_signal(signal: float, mean: float) -> None:
    assert math.erf(signal / math.sqrt(2)) == pytest.approx(mean, abs=1e-9)
    noise = torch.randn(400_000, generator=torch.Generator().manual_seed(0))
    found = Sign().apply(signal + noise, SETTINGS).mean().item()
    assert abs(found - mean) < 4 / math.sqrt(400_000)


@pytest.mark.parametrize("steps", [1, 7])
def test_algorithm_2_steps_by_the_sign_of_adams_direction(steps: int) -> None:
    """SignAdam as printed, second moment and all, is the sign of a running average."""
    rng = torch.Generator().manual_seed(3)
    ours = nn.Parameter(torch.zeros(6))
    optimizer = Signs([ours], lr=LR, momentum=BETA1)
    place, first, second = torch.zeros(6), torch.zeros(6), torch.zeros(6)
    for number in range(1, steps + 1):
        gradient = torch.randn(6, generator=rng)
        ours.grad = gradient.clone()
        optimizer.step()
        first, second = BETA1 * first + (1 - BETA1) * gradient, 0.999 * second + 0.001 * gradient**2
        adam = first / (1 - BETA1**number) / ((second / (1 - 0.999**number)).sqrt() + EPS)
        place -= LR * adam.sign()
    assert torch.allclose(ours.detach(), place, atol=1e-7)
