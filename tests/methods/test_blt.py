"""BLT: noise through buffers is less noise in the end, the whole run is one release, and resuming is exact."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import reticent as rt
import reticent.inside.buffered
from reticent.accounting import Composed, Gaussian, Repeated, RoundOfStream, Spending, epsilon
from reticent.accounting.event_json import from_json, to_json
from reticent.accounting.matrices.buffered import Buffered, error, optimised
from reticent.accounting.matrices.toeplitz import workload
from reticent.accounting.renyi import curves, replaced
from reticent.accounting.simplify import tally
from reticent.errors import ResumeError, SettingError
from reticent.inside import Bands, Buffers, MixedSum, PartsInTurn, Poisson, RoundSettings
from reticent.inside.banded import PART
from reticent.methods import Method
from reticent.outside import ExponentialDecay, NoisyTest, Selective, Unmixed

Pair = tuple[Tensor, Tensor]


def make(method: Method, examples: Pair, **settings: Any) -> rt.Run:
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    settings = {"batch_size": 40, "rounds": 11, "delta": 1e-5, "seed": 0} | settings
    return rt.Run(net, torch.optim.SGD(net.parameters(), lr=0.5), examples, method=method, **settings)


def weights(run: rt.Run) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in run.model.parameters()])


def test_the_error_is_that_of_dense_matrices_and_nothing_near_is_better() -> None:
    rounds, parts, rng = 40, 10, np.random.default_rng(0)
    for momentum in (0.0, 0.9):
        found = optimised(2, rounds, parts, momentum)
        column = found.column(rounds)
        matrix = sum(entry * np.eye(rounds, k=-ago) for ago, entry in enumerate(column))
        work = sum(entry * np.eye(rounds, k=-ago) for ago, entry in enumerate(workload(rounds, momentum)))
        moved = np.linalg.norm(matrix[:, ::parts].sum(1))
        dense = moved**2 * np.square(work @ np.linalg.inv(matrix)).sum() / rounds
        assert error(found, rounds, parts, momentum) == pytest.approx(dense)
        for _ in range(200):
            size = 10 ** rng.uniform(-4, -1)
            decays = np.clip(np.array(found.decays) + rng.normal(size=2) * size, 0, 1)
            shares = np.clip(np.array(found.weights) + rng.normal(size=2) * size, 0, 0.5)
            near = Buffered(tuple(map(float, decays)), tuple(map(float, shares)))
            assert error(near, rounds, parts, momentum) >= dense * (1 - 1e-3)


@pytest.mark.parametrize(
    ("rounds", "parts", "one", "two", "three"),
    [(480, 24, 0.2794, 0.2790, 0.2790), (2000, 100, 0.1537, 0.1512, 0.1511), (2000, 2000, 0.1221, 0.1042, 0.1034)],
)
def test_what_buffers_save(rounds: int, parts: int, one: float, two: float, three: float) -> None:
    """The table of docs/methods/blt.md."""
    plain = error(Buffered((), ()), rounds, parts)
    for buffers, share in enumerate((one, two, three), 1):
        found = (error(optimised(buffers, rounds, parts), rounds, parts) / plain) ** 0.5
        assert found == pytest.approx(share, abs=1e-3)


@pytest.mark.parametrize(("rounds", "parts"), [(1, 1), (2, 1), (30, 1), (7, 20)])
def test_short_and_crowded_runs_have_matrices_too(rounds: int, parts: int) -> None:
    found = optimised(2, rounds, parts)
    assert error(found, rounds, parts) <= error(Buffered((), ()), rounds, parts) * (1 + 1e-3)


def test_columns_that_could_rise_are_refused() -> None:
    for decays, shares in (((0.5,), (1.1,)), ((0.5,), (-0.1,)), ((1.1,), (0.1,)), ((0.5,), ())):
        with pytest.raises(SettingError):
            Buffered(decays, shares)


def test_what_was_mixed_is_unmixed_and_is_the_matrix(blobs: Pair) -> None:
    mixing = Buffers(3, rounds=40, parts=10)
    sums = torch.randn(40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    column, now, known = mixing.matrix.column(40), RoundSettings(100, 10, 1.0, 1.0), {}
    for number in range(40):
        mixed = sum((column[ago] * sums[number - ago] for ago in range(number + 1)), torch.zeros(3))
        found, known = Unmixed(mixing).follow(mixed, now, torch.zeros(3).double(), known)
        torch.testing.assert_close(found * 10, sums[number])
    assert known["made"].shape == (3, 3), "three buffers, whatever the number of rounds"


def test_sealed_answers_are_the_matrix_times_the_sums(blobs: Pair) -> None:
    """Of a model that stays where it is: the sums are those of the parts, again and again."""
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    run = rt.Run(
        net, torch.optim.SGD(net.parameters(), lr=0.0), blobs, method=rt.methods.get("blt", noise_multiplier=1.0),
        batch_size=50, rounds=9, delta=1e-5, seed=0,
    )  # fmt: skip
    probe = run.watch()
    list(run)
    sealed = torch.stack([one.sealed for one in probe.openings]).numpy()
    column = run.plan.method.query.mixing.matrix.column(9)  # type: ignore[attr-defined]
    matrix = sum(entry * np.eye(9, k=-ago) for ago, entry in enumerate(column))
    sums = np.linalg.solve(matrix, sealed)
    np.testing.assert_allclose(sums[:4], sums[4:8], atol=1e-4)
    parts = run._vault.memory[PART].numpy()
    assert [one.drawn for one in probe.openings] == [int((parts == number % 4).sum()) for number in range(9)]


def test_noise_on_the_sum_of_all_rounds_is_less_than_independent_noise_is() -> None:
    mixing, width = Buffers(2, rounds=64, parts=16), 2000
    rng, now = torch.Generator().manual_seed(0), RoundSettings(160, 10, 1.0, 1.0)
    total, known = torch.zeros(width, dtype=torch.float64), {}
    for _ in range(64):
        noise = torch.randn(width, generator=rng, dtype=torch.float64) * mixing.sensitivity
        found, known = Unmixed(mixing).follow(noise, now, torch.zeros(width).double(), known)
        total += 10 * found
    independent = (64 * 4) ** 0.5  # of four times the squared noise, since everybody takes part four times
    assert float(total.std()) < 0.55 * independent


def test_price_and_ledger_are_those_of_one_release(blobs: Pair) -> None:
    run = make(rt.methods.get("blt", noise_multiplier=4.0), blobs)
    list(run)
    assert run.ledger.tally() == run.plan.tally()
    mixing = run.plan.method.query.mixing  # type: ignore[attr-defined]
    assert mixing == Buffers(3, rounds=11, parts=5)
    inner = Gaussian(4.0 / mixing.sensitivity)
    assert [entry.event for entry in run.ledger] == [RoundOfStream(number, 11, inner) for number in range(11)]
    assert tally(run.ledger.tally()) == {inner: 1}
    assert run.plan.price.epsilon == epsilon([inner], 1e-5)
    assert from_json(to_json(RoundOfStream(1, 11, inner))) == RoundOfStream(1, 11, inner)
    for adjacency, curve in (("zero-out", curves.curve), ("replace", replaced.replaced)):
        trial = Composed(tuple(Repeated(event, count) for event, count in run.plan.tally().items()))
        assert curve(trial) == pytest.approx(curve(inner))
        spent = Spending(run.plan.tally()).divergence(8.0, adjacency)  # type: ignore[arg-type]
        assert spent == pytest.approx(Spending({inner: 1}).divergence(8.0, adjacency))  # type: ignore[arg-type]
    both = Counter(run.plan.tally()) + Counter(run.plan.tally())
    assert tally(both) == {inner: 2}
    with pytest.raises(SettingError, match="one of the rounds"):
        RoundOfStream(11, 11, inner)


def test_parts_are_no_larger_than_a_batch(blobs: Pair) -> None:
    run = make(rt.methods.get("blt", noise_multiplier=4.0), blobs, batch_size=140)  # of 200
    probe = run.watch()
    list(run)
    first, second = probe.openings[:2]
    assert first.drawn + second.drawn == 200
    assert max(first.drawn, second.drawn) < 140
    assert run.plan.method.direction.mixing.expected(run.plan.settings) == 100  # type: ignore[union-attr]


def test_noise_rounds_and_batch_follow_from_a_budget() -> None:
    budget, method = rt.Budget(3.0, 1e-5), rt.methods.get("blt", buffers=1)
    found = rt.methods.plan(method, size=200, batch_size=20, rounds=30, budget=budget)
    assert 2.99 < found.price.epsilon <= 3.0
    loud = replace(method, noise_multiplier=found.settings.noise_multiplier)
    assert rt.methods.plan(loud, size=200, batch_size=20, budget=budget).rounds >= 30
    longer = rt.methods.plan(loud, size=200, batch_size=20, rounds=60, budget=budget)
    assert longer.rounds < 60
    assert longer.method.query == MixedSum(Buffers(1, rounds=longer.rounds, parts=10))


def test_a_round_that_failed_and_a_run_that_stopped_go_on_as_they_were(
    blobs: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = rt.methods.get("blt", noise_multiplier=4.0)
    whole = make(method, blobs)
    list(whole)
    run = make(method, blobs, folder=tmp_path)
    for _ in range(5):
        run.step()
    right = type(run.optimizer).step

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(type(run.optimizer), "step", fail)
    with pytest.raises(OSError, match="full"):
        run.step()
    monkeypatch.setattr(type(run.optimizer), "step", right)
    run.step()
    run.save()
    run.step()  # released, and in no checkpoint
    del run
    again = make(method, blobs, folder=tmp_path, resume=True)
    assert again.number == 6
    list(again)
    assert torch.equal(weights(again), weights(whole))
    assert again.ledger.tally() == whole.ledger.tally()


def test_other_buffers_are_not_gone_on_with(blobs: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method = rt.methods.get("blt", noise_multiplier=4.0)
    run = make(method, blobs, folder=tmp_path)
    run.step()
    run.save()
    near = Buffered(optimised(3, 11, 5).decays, tuple(0.9 * one for one in optimised(3, 11, 5).weights))
    monkeypatch.setattr(reticent.inside.buffered, "optimised", lambda *_: near)
    with pytest.raises(ResumeError):
        list(make(method, blobs, folder=tmp_path, resume=True))


@pytest.mark.parametrize(
    "change",
    [
        {"gate": Selective(NoisyTest(batch_size=10))},
        {"control": ExponentialDecay(0.1)},
        {"sampler": Poisson()},
        {"sampler": PartsInTurn(Buffers(2))},
        {"direction": Unmixed(Buffers(2))},
        {"query": MixedSum(Bands(3)), "direction": Unmixed(Bands(3))},
        {"query": rt.inside.GradientSum},
    ],
)
def test_what_is_not_proved_is_refused(change: dict[str, Any], blobs: Pair) -> None:
    with pytest.raises(SettingError):
        make(replace(rt.methods.get("blt", noise_multiplier=2.0), **change), blobs)


@pytest.mark.parametrize("wrong", [{"buffers": 0}, {"buffers": 5}, {"workload_momentum": 1.0}])
def test_wrong_options_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        rt.methods.get("blt", **wrong)
