"""A run is the same on any number of ranks: the same draws, noise and ledger; only the order of additions differs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import runs
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from world import answers, same

import reticent as rt
from reticent.accounting import Gaussian, Ledger, Planned
from reticent.inside import Drawn, Everyone, GaussianNoise, Randomness, RoundSettings, Vault, as_store
from reticent.inside.lattice import BLOCK
from reticent.inside.ranks import Ranks
from reticent.inside.several import here

pytestmark = pytest.mark.filterwarnings("ignore::reticent.errors.PrivacyWarning")  # what so few examples promise

CLOSE = {torch.float32: 1e-4, torch.float64: 1e-10}


def watched_draws() -> Any:
    """A digest of everybody who is drawn from now on."""
    found, right = hashlib.sha256(), Vault.draw

    def draw(self: Vault, *asked: Any) -> Any:
        drawn = right(self, *asked)
        found.update(drawn._index.tobytes())
        return drawn

    Vault.draw = draw  # type: ignore[method-assign]  # in a forked process, or put back by monkeypatch
    return found


def finished(make: Callable[[], rt.Run]) -> Callable[[int], tuple[Tensor, Any]]:
    """A job: run to the end, then tell the weights and all that must be equal everywhere."""

    def job(_rank: int) -> tuple[Tensor, Any]:
        drawn = watched_draws()
        run = make()
        list(run)
        assert run.over
        return runs.weights(run), (runs.released(run), run.number, run.kept, drawn.hexdigest())

    return job


def apart(one: Tensor, two: Tensor) -> float:
    return float((one - two).norm() / two.norm())


def unchanged(method: str, dtype: torch.dtype, world: int) -> None:
    def make() -> rt.Run:
        return runs.make(method, dtype=dtype)

    right = finished(make)(0)  # here, so that what is priced once need not be priced on every rank
    weights, facts = zip(*answers(world, finished(make)), strict=True)
    assert same(facts) == right[1]
    assert all(torch.equal(one, weights[0]) for one in weights)
    assert apart(weights[0], right[0]) < CLOSE[dtype]


# Every method on two ranks; on three those that ask most of each other. The rest is slow: two ranks guard each method,
# and these two the division by three.
USUAL = [
    *((name, torch.float32, 2) for name in runs.METHODS),
    *((name, torch.float64, 3) for name in ("dpsur", "dpis")),
]
WORLDS = [(name, dtype, world) for name in runs.METHODS for dtype in (torch.float32, torch.float64) for world in (2, 3)]


@pytest.mark.parametrize(("method", "dtype", "world"), USUAL)
def test_ranks_change_nothing_but_the_order_of_additions(
    method: str, dtype: torch.dtype, world: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Vault, "draw", Vault.draw)  # put back when the test ends
    unchanged(method, dtype, world)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "dtype", "world"), [world for world in WORLDS if world not in USUAL])
def test_nor_do_the_other_numbers_of_ranks(
    method: str, dtype: torch.dtype, world: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Vault, "draw", Vault.draw)
    unchanged(method, dtype, world)


def test_ranks_see_the_same_views(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Vault, "draw", Vault.draw)
    rng = torch.Generator().manual_seed(5)
    images = torch.randn(runs.SIZE, 1, 3, 4, generator=rng), torch.arange(runs.SIZE) % 2

    def make() -> rt.Run:
        model = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
        return runs.make(examples=images, model=model, rounds=10, views="mirror+shift=1+count=3")

    torch.manual_seed(1000)  # as the first of several ranks has it
    right = finished(make)(0)
    weights, facts = zip(*answers(2, finished(make)), strict=True)
    assert same(facts) == right[1]
    assert torch.equal(*weights)
    assert apart(weights[0], right[0]) < CLOSE[torch.float32]


class Nothing:
    """A long answer that is the same for everybody."""

    sensitivity = 1.0

    def __init__(self, size: int):
        self.size = size

    def answer(self, _drawn: Drawn) -> Tensor:
        return torch.zeros(self.size, dtype=torch.float64)


def released(size: int, ranks: Ranks, noise: float = 2.0) -> Tensor:
    vault = Vault(
        as_store((torch.zeros(9, 1),)),
        randomness=Randomness.from_seed(5),
        ledger=Ledger(),
        allowance=Planned([Gaussian(noise)]),
        ranks=ranks,
    )
    settings = RoundSettings(9, 9, 1.0, noise)
    return vault.release(vault.ask(Nothing(size), vault.draw(Everyone(), settings)), GaussianNoise(noise))


def test_noise_is_added_once_and_does_not_depend_on_the_number_of_ranks() -> None:
    for size in (3 * BLOCK + 7, 5):
        alone = released(size, Ranks())
        for world in (2, 3):
            for found in answers(world, lambda _rank, size=size: released(size, here())):
                assert torch.equal(found, alone)
        if size > BLOCK:
            assert float(alone.std()) == pytest.approx(2.0, rel=0.01)


def test_each_rank_makes_only_its_blocks() -> None:
    def job(_rank: int) -> list[int]:
        made, right = [], Randomness.fill

        def fill(self: Randomness, out: Any, *place: Any) -> None:
            made.extend(place[3:] if "noise" in place else ())
            right(self, out, *place)

        Randomness.fill = fill  # type: ignore[method-assign]  # in a forked process
        released(5 * BLOCK, here())
        return sorted(made)

    assert answers(2, job) == [[0, 1, 2], [3, 4]]


@pytest.mark.parametrize("cuts", [(0, 10, 60), (0, 59, 60)])
def test_each_rank_may_hold_its_own_examples_only(cuts: tuple[int, ...]) -> None:
    x, y = runs.blobs(torch.float64)

    def job(rank: int) -> tuple[Tensor, Any]:
        mine = range(cuts[rank], cuts[rank + 1])
        held = x[mine.start : mine.stop], y[mine.start : mine.stop]
        return finished(lambda: runs.make("dpsur", dtype=torch.float64, examples=held, shard=mine, rounds=8))(rank)

    whole = finished(lambda: runs.make("dpsur", dtype=torch.float64, rounds=8))
    right = answers(1, whole)[0]
    for weights, facts in answers(2, job):
        assert facts == right[1]
        assert apart(weights, right[0]) < 1e-10


def test_some_ranks_are_left_without_examples() -> None:
    def make() -> rt.Run:
        return runs.make("dpis", rounds=8, batch_size=1.5, epochs=0.2)

    right = answers(1, finished(make))[0]
    for weights, facts in answers(3, finished(make)):
        assert facts == right[1]
        assert apart(weights, right[0]) < 1e-4


def test_a_wrapped_model_is_trained_without_its_wrapper() -> None:
    def job(rank: int) -> tuple[Tensor, Any]:
        return finished(lambda: runs.make(rounds=5, model=DistributedDataParallel(runs.network())))(rank)

    found, plain = answers(2, job), answers(2, finished(lambda: runs.make(rounds=5)))
    assert torch.equal(found[0][0], found[1][0])
    assert found[0][1] == plain[0][1]
    assert apart(found[0][0], plain[0][0]) < 1e-6


def test_the_deniability_test_is_answered_by_one_rank_for_all() -> None:
    method = rt.methods.pd_sgd(noise_std=0.05, needed=2)
    right = answers(1, finished(lambda: runs.make(method, rounds=4)))[0]
    for weights, facts in answers(2, finished(lambda: runs.make(method, rounds=4))):
        assert facts == right[1]
        assert apart(weights, right[0]) < 1e-4


def test_chance_in_the_model_belongs_to_the_share_not_to_the_rank() -> None:
    def make() -> rt.Run:
        return runs.make(rounds=4, model=nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2)))

    one, two = (answers(2, finished(make)) for _ in range(2))
    assert torch.equal(one[0][0], one[1][0])
    assert torch.equal(one[0][0], two[0][0])


def test_only_the_first_rank_writes(tmp_path: Path) -> None:
    def job(rank: int) -> Any:
        place = tmp_path / f"rank-{rank}"
        run = runs.make(rounds=3, folder=place)
        list(run)
        return [path.name for path in sorted(place.iterdir())] if place.exists() else None

    assert answers(2, job) == [["claim.json", "ledger.jsonl", "private", "run.lock"], None]


def test_fit_trains_on_ranks_and_keeps_one_folder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[int] = []

    def job(_rank: int) -> Any:
        torch.manual_seed(0)
        trained = rt.fit(
            runs.network(),
            rt.normalise(runs.blobs(), noise_multiplier=5.0, low=-5.0, high=5.0),
            epsilon=3.0,
            delta=1e-3,
            epochs=1,
            batch_size=12,
            lr=0.1,
            folder=tmp_path,
            seed=1,
            progress=lambda _run, step: seen.append(step.number),
        )
        return dict(trained.model.state_dict()), str(trained.guarantee), len(seen)

    (first, says, told), (second, also, silent) = answers(2, job)
    assert says == also
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert (told, silent) == (5, 0)
    assert capfd.readouterr().err.count("no loss was given") == 1
    assert rt.load(tmp_path, runs.network()).guarantee.epsilon <= 3.0
