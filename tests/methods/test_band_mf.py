"""BandMF: correlated noise is less noise in the end, an example is told of once in a turn, and resuming is exact."""

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
import reticent.inside.banded
from reticent.accounting import Composed, Gaussian, PartInTurn, Repeated, Spending, Subsampled
from reticent.accounting.event_json import from_json, to_json
from reticent.accounting.matrices.banded import error, optimised, square_root
from reticent.accounting.renyi import curves, replaced
from reticent.accounting.simplify import tally
from reticent.errors import ResumeError, SettingError, UnknownName
from reticent.inside import Bands, Cyclic, MixedSum, Normalise, Poisson, RoundSettings
from reticent.inside.banded import PART
from reticent.methods import Method
from reticent.outside import ExponentialDecay, NoisyTest, Selective, Unmixed

Pair = tuple[Tensor, Tensor]


def make(method: Method, examples: Pair, **settings: Any) -> rt.Run:
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    settings = {"batch_size": 10, "rounds": 11, "delta": 1e-5, "seed": 0} | settings
    return rt.Run(net, torch.optim.SGD(net.parameters(), lr=0.5), examples, method=method, **settings)


def weights(run: rt.Run) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in run.model.parameters()])


def test_columns_are_of_length_one_and_fall() -> None:
    columns = [square_root(bands) for bands in (1, 2, 7, 64)]
    for column in map(np.array, [*columns, *(optimised(bands, 300) for bands in (1, 2, 7, 64)), optimised(9, 40, 0.9)]):
        assert np.linalg.norm(column) <= 1
        assert np.linalg.norm(column) == pytest.approx(1)
        assert (np.diff(column) < 0).all(), "so that the inverse does not grow (Enestrom and Kakeya)"


def test_the_optimised_matrix_leaves_the_least_noise() -> None:
    """Against dense inverses for the error, and against matrices near it for the optimum."""
    bands, rounds, rng = 5, 40, np.random.default_rng(0)
    for momentum in (0.0, 0.9):
        column = np.array(optimised(bands, rounds, momentum))
        matrix = sum(entry * np.eye(rounds, k=-ago) for ago, entry in enumerate(column))
        work = np.tril(np.ones((rounds, rounds)))
        work @= sum(momentum**ago * np.eye(rounds, k=-ago) for ago in range(rounds))
        dense = np.square(work @ np.linalg.inv(matrix)).sum() / rounds
        assert error(tuple(column), rounds, momentum) == pytest.approx(dense)
        for _ in range(200):
            near = column + rng.normal(size=bands) * 10 ** rng.uniform(-4, -1)
            assert error(tuple(near / np.linalg.norm(near)), rounds, momentum) >= dense * (1 - 1e-6)


@pytest.mark.parametrize(
    ("bands", "rounds", "cut", "best"),
    [(4, 500, 79.03, 67.08), (8, 480, 43.60, 35.72), (64, 500, 11.44, 10.78), (64, 2000, 33.52, 26.27)],
)
def test_what_the_optimised_matrix_saves(bands: int, rounds: int, cut: float, best: float) -> None:
    """The table of docs/methods/band_mf.md."""
    assert error(square_root(bands), rounds) == pytest.approx(cut, abs=0.01)
    assert error(optimised(bands, rounds), rounds) == pytest.approx(best, abs=0.01)


def test_a_matrix_for_fewer_rounds_than_bands_is_one_too() -> None:
    assert error(optimised(64, 30), 30) < error(square_root(64), 30)
    assert error(optimised(3, 1), 1) == pytest.approx(1.0), "of one round there is nothing to take away"


def test_what_was_mixed_is_unmixed() -> None:
    bands, rounds = 5, 40
    sums = torch.randn(rounds, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    now, known = RoundSettings(100, 10, 1.0, 1.0), {}
    for number in range(rounds):
        mixed = sum(
            (
                weight * sums[number - ago]
                for ago, weight in enumerate(Bands(bands, rounds=40).numbers)
                if ago <= number
            ),
            torch.zeros(3),
        )
        found, known = Unmixed(Bands(bands, rounds=40)).follow(mixed, now, torch.zeros(3).double(), known)
        torch.testing.assert_close(found * 10, sums[number])


def test_without_noise_it_is_plain_training_on_its_draws(blobs: Pair) -> None:
    ends = []
    for bands in (1, 4):
        run = make(rt.methods.get("band_mf", noise_multiplier=0.0, bands=bands), blobs, batch_size=50, rounds=4)
        list(run)
        ends.append(weights(run))
        assert torch.isfinite(ends[-1]).all()
    by_hand = nn.Linear(4, 2)
    torch.manual_seed(0)
    by_hand = nn.Linear(4, 2)
    for part in range(4):  # everybody of a part takes part at 50 of 200 in 4 parts
        index = torch.from_numpy(np.flatnonzero(_parts(blobs) == part))
        total = [torch.zeros_like(p) for p in by_hand.parameters()]
        for row in index:
            loss = nn.functional.cross_entropy(by_hand(blobs[0][row : row + 1]), blobs[1][row : row + 1])
            gradient = torch.autograd.grad(loss, list(by_hand.parameters()))
            length = torch.cat([one.reshape(-1) for one in gradient]).norm()
            for into, one in zip(total, gradient, strict=True):
                into += one * min(1.0, 1.0 / float(length))
        with torch.no_grad():
            for parameter, one in zip(by_hand.parameters(), total, strict=True):
                parameter -= 0.5 * one / 50
    torch.testing.assert_close(ends[1], torch.cat([p.detach().reshape(-1) for p in by_hand.parameters()]))


def _parts(blobs: Pair) -> np.ndarray:
    run = make(rt.methods.get("band_mf", noise_multiplier=0.0, bands=4), blobs, batch_size=50, rounds=4)
    run.step()
    return run._vault.memory[PART].numpy()


def test_noise_on_the_sum_of_all_rounds_is_less_than_independent_noise_is() -> None:
    bands, rounds, width = 16, 64, 2000
    rng, now = torch.Generator().manual_seed(0), RoundSettings(1600, 10, 1.0, 1.0)
    total, known = torch.zeros(width, dtype=torch.float64), {}
    for _ in range(rounds):
        noise = torch.randn(width, generator=rng, dtype=torch.float64)
        found, known = Unmixed(Bands(bands, rounds=rounds)).follow(noise, now, torch.zeros(width).double(), known)
        total += 10 * found
    assert float(total.std()) < 0.5 * rounds**0.5, "prefix sums of independent noise have a deviation of sqrt(rounds)"


def test_parts_are_thrown_by_coins_and_drawn_from_in_turn() -> None:
    sampler, memory = Cyclic(4), {}
    drawn = np.zeros((400, 1000), dtype=bool)
    for number in range(400):
        now = RoundSettings(1000, 50, 1.0, 1.0, number)
        drawn[number, sampler.draw(now, 1000, np.random.default_rng(number), memory)._index] = True
    parts = memory[PART].numpy()
    assert (np.abs(np.bincount(parts, minlength=4) - 250) < 60).all()
    for number in range(400):
        assert not drawn[number, parts != number % 4].any()
    turns = np.array([drawn[part::4, parts == part].mean() for part in range(4)])
    np.testing.assert_allclose(turns, 0.2, atol=0.01)
    assert drawn.sum(1).mean() == pytest.approx(50, rel=0.05)


def test_a_batch_larger_than_a_part_is_the_part() -> None:
    now = RoundSettings(100, 60, 1.0, 1.0)
    assert Cyclic(4).amplify(Gaussian(1.0), now) == PartInTurn(0, 4, Gaussian(1.0))
    found, _ = Unmixed(Bands(4, rounds=8)).follow(
        torch.ones(1).double() * optimised(4, 8)[0] * 25, now, torch.zeros(1), {}
    )
    assert float(found) == pytest.approx(1.0), "over the 25 that are expected, not over 60"


def test_price_and_ledger_are_those_of_the_turns(blobs: Pair) -> None:
    run = make(rt.methods.get("band_mf", noise_multiplier=2.0, bands=4), blobs)
    list(run)
    assert run.ledger.tally() == run.plan.tally()
    assert [entry.event.part for entry in run.ledger] == [number % 4 for number in range(11)]  # type: ignore[union-attr]
    assert tally(run.ledger.tally()) == {Subsampled(0.2, Gaussian(2.0)): 3}
    plain = rt.methods.plan(rt.methods.dpsgd(noise_multiplier=2.0), size=200, batch_size=40, rounds=3, delta=1e-5)
    assert run.plan.price.epsilon == plain.price.epsilon
    event = PartInTurn(1, 4, Subsampled(0.2, Gaussian(2.0)))
    assert from_json(to_json(event)) == event


def test_two_runs_together_cost_both(blobs: Pair) -> None:
    one, other = (
        rt.methods.plan(rt.methods.get("band_mf", noise_multiplier=2.0, bands=4), size=200, batch_size=10, rounds=r)
        for r in (9, 6)
    )
    both = Counter(one.tally()) + Counter(other.tally())
    assert tally(both) == {Subsampled(0.2, Gaussian(2.0)): 3 + 2}


def test_turns_are_counted_alike_by_a_search_and_by_the_budget_of_a_dataset() -> None:
    said = rt.methods.plan(rt.methods.get("band_mf", noise_multiplier=2.0, bands=4), size=200, batch_size=10, rounds=11)
    turns = {Subsampled(0.2, Gaussian(2.0)): 3}
    trial = Composed(tuple(Repeated(event, count) for event, count in said.tally().items()))
    for adjacency, curve in (("zero-out", curves.curve), ("replace", replaced.replaced)):
        assert curve(trial) == pytest.approx(curve(Composed((Repeated(next(iter(turns)), 3),))))
        spent = Spending(said.tally()).divergence(8.0, adjacency)  # type: ignore[arg-type]
        assert spent == pytest.approx(Spending(turns).divergence(8.0, adjacency))  # type: ignore[arg-type]
    assert tally([Repeated(PartInTurn(1, 4, Gaussian(1.0)), 3)]) == {Gaussian(1.0): 3}, "turns without a beginning"
    assert tally([Repeated(trial, 2)]) == {Subsampled(0.2, Gaussian(2.0)): 6}


def test_a_round_that_failed_is_repeated_as_it_was(
    blobs: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = rt.methods.get("band_mf", noise_multiplier=1.0, bands=4)
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
    list(run)
    assert torch.equal(weights(run), weights(whole))
    assert run.ledger.tally() == whole.ledger.tally()


def test_another_matrix_is_not_gone_on_with(blobs: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method = rt.methods.get("band_mf", noise_multiplier=1.0, bands=4)
    run = make(method, blobs, folder=tmp_path)
    run.step()
    run.save()
    monkeypatch.setattr(reticent.inside.banded, "optimised", lambda *asked: optimised(*asked)[::-1])
    again = make(method, blobs, folder=tmp_path, resume=True)
    with pytest.raises(ResumeError, match="matrix"):
        again.step()


def test_a_matrix_is_made_for_the_rounds_of_the_plan(blobs: Pair) -> None:
    method = rt.methods.get("band_mf", noise_multiplier=1.0, bands=4)
    assert make(method, blobs).plan.method.query == MixedSum(Bands(4, rounds=11))
    affords = rt.methods.plan(method, size=200, batch_size=10, budget=rt.Budget(3.0, 1e-5))
    assert affords.method.query == MixedSum(Bands(4, rounds=affords.rounds))
    assert affords.method.direction == Unmixed(Bands(4, rounds=affords.rounds))
    cut = replace(method, query=MixedSum(Bands(4, "square-root")), direction=Unmixed(Bands(4, "square-root")))
    assert make(cut, blobs).plan.price == make(method, blobs).plan.price, "the price does not hang on the matrix"
    with pytest.raises(SettingError, match="plan of a run"):
        _ = Bands(4).numbers
    with pytest.raises(UnknownName, match="matrix"):
        Bands(4, matrix="best")


@pytest.mark.parametrize(
    "change",
    [
        {"gate": Selective(NoisyTest(batch_size=10))},
        {"control": ExponentialDecay(0.1)},
        {"sampler": Poisson()},
        {"sampler": Cyclic(3)},
        {"direction": Unmixed(Bands(3))},
        {"direction": Unmixed(Bands(4, matrix="square-root"))},
        {"query": MixedSum(Bands(5)), "direction": Unmixed(Bands(5))},
    ],
)
def test_what_is_not_proved_is_refused(change: dict[str, Any], blobs: Pair) -> None:
    method = replace(rt.methods.get("band_mf", noise_multiplier=2.0, bands=4), **change)
    with pytest.raises(SettingError):
        make(method, blobs)


def test_other_sums_are_refused_on_its_draws_and_other_bounds_are_not(blobs: Pair) -> None:
    with pytest.raises(SettingError, match="charged for MixedSum"):
        make(replace(rt.methods.dpsgd(noise_multiplier=1.0), sampler=Cyclic(4)), blobs)
    with pytest.raises(SettingError, match="bands is 1 to"):
        Cyclic(0)
    normalised = replace(rt.methods.get("band_mf", noise_multiplier=2.0, bands=4), bound=Normalise())
    list(make(normalised, blobs))
