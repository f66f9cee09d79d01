"""Filtered directions: they are the papers' filters, cost nothing, and go back with what is dropped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.signal import butter, lfilter
from torch import Tensor, nn

import reticent as rt
from reticent.errors import ResumeError, SettingError
from reticent.inside import Everyone, RoundSettings
from reticent.methods import Method
from reticent.outside import Annealed, Kalman, LowPass, NoisyTest, PublicHoldout, Selective

Pair = tuple[Tensor, Tensor]
NOW = RoundSettings(size=100, batch_size=10, max_grad_norm=1.0, noise_multiplier=1.0)


def make(method: Method, examples: Pair, **settings: Any) -> rt.Run:
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    settings = {"batch_size": 20, "rounds": 6, "delta": 1e-5, "seed": 0} | settings
    return rt.Run(net, torch.optim.SGD(net.parameters(), lr=0.5), examples, method=method, **settings)


def weights(run: rt.Run) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in run.model.parameters()])


class Bowl(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.at = nn.Parameter(torch.tensor([3.0, -2.0], dtype=torch.float64))


def steepness(model: nn.Module, batch: Pair) -> Tensor:
    """A bowl for each example: its gradient at w is (w - centre) times its curvature."""
    centre, curvature = batch
    return ((model.at - centre).square().sum(1) / 2) * curvature  # type: ignore[operator]


@pytest.mark.filterwarnings("ignore::reticent.errors.PrivacyWarning")
def test_disk_is_the_papers_filter_with_its_two_places_written_out() -> None:
    """Without noise and with everybody in: (1 - k) last + k ((1 - k) / (k y) grad(ahead) + (1 - that) grad(here))."""
    centre, curvature = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).double(), torch.tensor([1.0, 0.5]).double()
    gain, lr = 0.6, 0.3
    base = rt.methods.disk(noise_multiplier=0.0, gain=gain, max_grad_norm=1e6)
    model = Bowl()
    sgd = torch.optim.SGD(model.parameters(), lr=lr)
    method = replace(base, sampler=Everyone())
    run = rt.Run(model, sgd, (centre, curvature), method=method, loss=steepness, batch_size=2, rounds=7, seed=0)

    def gradient(at: Tensor) -> Tensor:
        return ((at - centre) * curvature[:, None]).mean(0)

    here, step, gamma = torch.tensor([3.0, -2.0], dtype=torch.float64), torch.zeros(2).double(), (1 - gain) / gain
    estimate, mixed = gradient(here), (1 - gain) / (gain * gamma)
    for number, _ in enumerate(run):
        if number:
            measured = mixed * gradient(here + gamma * step) + (1 - mixed) * gradient(here)
            estimate = (1 - gain) * estimate + gain * measured
        step = -lr * estimate
        here = here + step
        torch.testing.assert_close(model.at.detach(), here)


@pytest.mark.parametrize("filtered", [Kalman(1.0), LowPass((1.0,), ())])
def test_a_filter_that_lets_everything_through_is_dpsgd_to_the_last_bit(filtered: Any, blobs: Pair) -> None:
    plain = rt.methods.dpsgd(noise_multiplier=1.0)
    runs = [make(method, blobs) for method in (plain, replace(plain, direction=filtered))]
    for run in runs:
        list(run)
    assert torch.equal(weights(runs[0]), weights(runs[1]))


def test_a_low_pass_filter_is_what_signal_processing_calls_one() -> None:
    b, a = butter(2, 0.2)
    given = np.random.default_rng(0).normal(size=(50, 3))
    expected = lfilter(b, a, given, axis=0) / lfilter(b, a, np.ones(50))[:, None]
    filtered, known = LowPass(tuple(b), tuple(a[1:])), {}
    for row, wanted in zip(given, expected, strict=True):
        found, known = filtered.follow(torch.from_numpy(10 * row), NOW, torch.zeros(3), known)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-9)


@pytest.mark.parametrize("filtered", [Kalman(0.2), LowPass()])
def test_noise_gets_smaller_and_a_steady_gradient_stays(filtered: Any) -> None:
    rng, known, seen = torch.Generator().manual_seed(0), {}, []
    for _ in range(300):
        noisy = 10 * (2.0 + torch.randn(50, generator=rng, dtype=torch.float64))
        found, known = filtered.follow(noisy, NOW, torch.zeros(50).double(), known)
        seen.append(found)
    late = torch.stack(seen[50:])
    assert float(late.mean()) == pytest.approx(2.0, abs=0.02)
    assert float(late.std()) < 0.4


@pytest.mark.parametrize(
    ("inputs", "outputs", "says"),
    [((1.0,), (-1.0,), "grows without end"), ((1.0, -1.0), (), "gain of 0"), ((), (), "at least one")],
)
def test_filters_that_end_nowhere_are_refused(inputs: Any, outputs: Any, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        LowPass(inputs, outputs)
    with pytest.raises(SettingError, match="gain must"):
        Kalman(0.0)


def test_a_gate_that_drops_leaves_the_filter_as_it_was(blobs: Pair) -> None:
    method = replace(rt.methods.disk(noise_multiplier=4.0), gate=Selective(NoisyTest(batch_size=10)))
    run = make(method, blobs, rounds=20)
    dropped = 0
    for _ in range(20):
        before = run._standing.remembered
        if not run.step().kept:
            dropped += 1
            assert run._standing.remembered is before
        else:
            assert run._standing.remembered is not before
    assert 0 < dropped < 20
    assert run.ledger.tally() == run.plan.tally()


def hiding(examples: Pair, **settings: Any) -> rt.Run:
    public = PublicHoldout(examples[0][:40], examples[1][:40])
    gate = Annealed(public, max_rejections=2, hidden_attempts=True)
    return make(replace(rt.methods.disk(noise_multiplier=2.0), gate=gate), examples, rounds=6, **settings)


@pytest.mark.filterwarnings("ignore::reticent.errors.PrivacyWarning")
def test_what_is_remembered_is_sealed_where_dropped_candidates_are_hidden(blobs: Pair, tmp_path: Path) -> None:
    """A replay of a hidden round with another estimate would judge other candidates by the same noise."""
    run = hiding(blobs, folder=tmp_path)
    for _ in range(3):
        run.step()
    run.save()
    run.step()
    again = hiding(blobs, folder=tmp_path, resume=True)
    changed = {name: part + 1 for name, part in again._standing.remembered.items()}
    # The same place ahead, so that the gradient is the same, and another estimate.
    changed["from"] = again._standing.remembered["from"]
    again._standing = replace(again._standing, remembered=changed)
    with pytest.raises(ResumeError):
        again.step()
