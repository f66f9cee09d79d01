"""DPSUR: acceptance laws of its tests, and what a round charges."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from laws import Law

import reticent as rt
from reticent.accounting import Gaussian, SelectiveAttempt, SelectiveRelease, Subsampled, Unbounded
from reticent.errors import SettingError
from reticent.inside import Flat, RoundSettings
from reticent.outside import After, Charge, NoisyTest, Open, Selective, SmoothTest, Trial

TRIALS = 1000


def share(law: Law, settle: Callable[[], bool]) -> float:
    kept = 0
    for trial in range(TRIALS):
        with law.vault.round(trial):
            kept += settle()
    return kept / TRIALS


def near(found: float, expected: float) -> bool:
    return abs(found - expected) <= 4 * math.sqrt(expected * (1 - expected) / TRIALS)


@pytest.mark.parametrize("noise", [0.8, 1.0, 1.3])
def test_good_and_bad_updates_are_told_apart_best_at_zero(noise: float) -> None:
    """Figure 6 of the paper, which takes beta = -1 for the place where its two curves are furthest apart."""
    betas = [step / 10 for step in range(-35, 6)]
    chances = {beta: NoisyTest(noise_multiplier=noise, threshold=beta).acceptance() for beta in betas}
    assert max(betas, key=lambda beta: chances[beta][1] - chances[beta][0]) == 0.0
    (bad, good), (bad_at_zero, good_at_zero) = chances[-1.0], chances[0.0]
    assert bad / good < bad_at_zero / good_at_zero, "what it buys: fewer bad ones for each good one"


@pytest.mark.parametrize(("beta", "better", "worse"), [(0.0, 0.691, 0.309), (-1.0, 0.5, 0.159)])
def test_acceptance_probabilities_of_dpsur(beta: float, better: float, worse: float) -> None:
    """P(keep | dE <= -C_v) = Phi((beta + 1) / 2 s_v), P(keep | dE >= C_v) = Phi((beta - 1) / 2 s_v)."""
    gate = Selective(NoisyTest(batch_size=20, noise_multiplier=1.0, threshold=beta))
    for move, expected in ((-1.0, better), (1.0, worse)):
        law = Law(torch.ones(20, 1))
        proposal = law.proposal(torch.tensor([move]))
        assert near(share(law, lambda p=proposal: gate.settle(p).kept), expected)


def test_an_empty_validation_draw_counts_as_no_change() -> None:
    law = Law(torch.ones(20, 1))
    gate = Selective(NoisyTest(batch_size=1e-9, noise_multiplier=1.0, threshold=0.0))
    proposal = law.proposal(torch.tensor([-1.0]))
    assert near(share(law, lambda: gate.settle(proposal).kept), 0.5)


def test_both_losses_are_on_the_same_draw() -> None:
    """Losses of 5 to 15 that all fall by 0.05 to 0.15: the means of two different draws would differ by chance."""
    law = Law(torch.linspace(0.5, 1.5, 20)[:, None], batch_size=5)
    gate = Selective(NoisyTest(batch_size=5, noise_multiplier=1e-6, limit=1.0, threshold=-0.04))
    proposal = law.proposal(torch.tensor([9.9]), before=torch.tensor([10.0]))
    with law.vault.round(0):
        kept = [gate.settle(proposal).kept for _ in range(50)]
    assert sum(kept) > 45  # all but empty draws, where the change is 0 by declaration


def test_the_smooth_test_reaches_from_low_to_high() -> None:
    test = SmoothTest(batch_size=20, low=0.2, high=0.8, limit=0.1, influence=0.2)
    gate = Selective(test)
    for move, expected in ((-1.0, 0.8), (1.0, 0.2), (0.0, 0.4)):
        law = Law(torch.ones(20, 1))
        proposal = law.proposal(torch.tensor([move]))
        assert near(share(law, lambda p=proposal: gate.settle(p).kept), expected)


def test_one_example_moves_the_smooth_chance_by_at_most_its_influence() -> None:
    coin = SmoothTest(low=0.3, high=0.9, influence=0.07).mechanism()
    for gains in (-30.0, -3.0, -0.5, 0.0, 0.2, 2.0, 50.0):
        for change in (-1.0, -0.3, 0.3, 1.0):
            ratio = math.log(coin.chance(gains + change) / coin.chance(gains))  # type: ignore[attr-defined]
            assert abs(ratio) <= 0.07 + 1e-12


def test_what_a_selective_round_charges() -> None:
    gradient, settings = Subsampled(0.1, Gaussian(2.0)), RoundSettings(1000, 100, 1.0, 2.0)
    visible = Selective(NoisyTest(batch_size=50)).charge(gradient, settings)
    low, high = NoisyTest().acceptance()
    attempt = SelectiveAttempt(0.1, 2.0, 0.05, low, high, None)
    assert visible.events == (attempt,)
    assert visible.covers == (gradient, Subsampled(0.05, Gaussian(1.3)))
    hidden = Selective(NoisyTest(batch_size=50), hidden_attempts=True, cap=7).charge(gradient, settings)
    assert hidden.events == (SelectiveRelease(attempt, 7),)
    assert len(hidden.covers) == 14
    smooth = Selective(SmoothTest(batch_size=50, influence=0.03)).charge(gradient, settings)
    assert smooth.events[0].smoothness == 0.03  # type: ignore[union-attr]


def test_late_selection_is_plain_at_first() -> None:
    gradient, gate = Subsampled(0.1, Gaussian(2.0)), After(3, Selective())
    early, late = (RoundSettings(1000, 100, 1.0, 2.0, number=number) for number in (2, 3))
    assert gate.charge(gradient, early) == Open().charge(gradient, early)
    assert gate.charge(gradient, late) == Selective().charge(gradient, late)


def test_selection_of_what_no_proof_covers_is_refused() -> None:
    from reticent.accounting import Laplace

    with pytest.raises(SettingError, match="no proof covers"):
        Selective().charge(Laplace(1.0), RoundSettings(10, 5, 1.0, 1.0))


# -- rejected gradients stay in the optimizer ------------------------------------------------------------------------


def kept_state(**options: bool) -> Selective:
    return Selective(NoisyTest(batch_size=10, noise_multiplier=1.0), keep_state=True, **options)


def test_keeping_the_state_charges_every_attempt_in_full() -> None:
    gradient, settings = Subsampled(0.1, Gaussian(2.0)), RoundSettings(100, 10, 2.0, 1.0)
    gate = kept_state()
    assert gate.proof.route == "naive"
    assert gate.charge(gradient, settings) == Charge((gradient, Subsampled(0.1, Gaussian(1.0))))


def test_keeping_the_state_and_counting_kept_updates_proves_nothing() -> None:
    gate = kept_state(hidden_attempts=True)
    (event,) = gate.charge(Subsampled(0.1, Gaussian(2.0)), RoundSettings(100, 10, 2.0, 1.0)).events
    assert isinstance(event, Unbounded)
    trained = rt.fit(
        torch.nn.Linear(2, 2),
        (torch.randn(100, 2), torch.zeros(100, dtype=torch.long)),
        method=replace(rt.methods.dpsur(noise_multiplier=2.0), gate=gate),
        epochs=0.3,
        batch_size=10,
        seed=0,
    )
    assert trained.guarantee.status == "none"
    assert math.isinf(trained.guarantee.epsilon)


@pytest.mark.parametrize("state_stays", [True, False])
def test_what_a_rejected_step_leaves_behind(state_stays: bool) -> None:
    """The parameters go back in either case, the momentum only without `keep_state`; nothing stays after an error."""
    net = torch.nn.Linear(2, 2)
    flat, before = Flat(net), None
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0, momentum=0.9)
    for fails in (False, True):
        before = flat.vector.clone()
        known = len(optimizer.state)
        with contextlib.suppress(ZeroDivisionError), Trial(flat, optimizer) as trial:
            flat.set_grad(torch.ones(6))
            optimizer.step()
            if state_stays:
                trial.keep_state()
            if fails:
                optimizer.state.clear()
                raise ZeroDivisionError
        assert torch.equal(flat.vector, before)
        assert len(optimizer.state) == (known if fails else 2 * state_stays)


def test_a_run_that_keeps_the_state_moves_by_rejected_gradients_too() -> None:
    """All but the last attempt rejected: with the state kept, the one kept step goes further than its own gradient."""
    ends = []
    for keep in (True, False):
        torch.manual_seed(0)
        net = torch.nn.Linear(3, 2)
        method = rt.methods.dpsur(noise_multiplier=2.0, validation_batch_size=20, keep_state=keep, seen_attempts=True)
        pair = torch.randn(100, 3), torch.randint(0, 2, (100,))
        run = rt.Run(
            net,
            torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9),
            pair,
            method=method,
            batch_size=20,
            rounds=12,
            delta=1e-5,
            seed=5,
        )
        kept = [step.kept for step in run]
        assert True in kept
        assert False in kept[: kept.index(True)], "choose a seed whose first attempt is rejected"
        ends.append((kept, torch.cat([p.detach().flatten() for p in net.parameters()]), run.guarantee().epsilon))
    assert not torch.equal(ends[0][1], ends[1][1])
    assert ends[0][2] == ends[1][2], "what is charged is the same: gradient and test of every attempt"
