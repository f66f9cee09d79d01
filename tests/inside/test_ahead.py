"""Fetching ahead changes nothing but the time: same draws, same answers, same ledger, and no key leaves the run."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.inside import records
from torch import Tensor, nn

import reticent as rt
from reticent import data
from reticent.errors import DataError, SettingError
from reticent.inside import Randomness, as_store
from reticent.inside.ahead import Fetched
from reticent.inside.columns import Columns
from reticent.methods import Method

Pair = tuple[Tensor, Tensor]
METHODS: dict[str, Method] = {
    "dpsgd": rt.methods.dpsgd(noise_multiplier=1.0),
    "dpsur": rt.methods.dpsur(noise_multiplier=2.0, validation_batch_size=60),
    "dpis": rt.methods.dpis(),
}


def went(examples: Any, name: str = "dpsgd", rounds: int = 4, **more: Any) -> tuple[Tensor, list[Any]]:
    """Weights and ledger of a run."""
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    run = rt.Run(
        net,
        torch.optim.SGD(net.parameters(), lr=0.1),
        examples,
        method=METHODS[name],
        batch_size=60,
        rounds=rounds,
        budget=rt.Budget(8.0, 1e-5) if name == "dpis" else None,
        delta=None if name == "dpis" else 1e-5,
        seed=0,
        **more,
    )
    for _ in run:
        pass
    return torch.cat([part.detach().flatten() for part in net.parameters()]), list(run.ledger)


def same(one: tuple[Tensor, list[Any]], other: tuple[Tensor, list[Any]]) -> bool:
    """To the last digit, with the same seals."""
    return torch.equal(one[0], other[0]) and one[1] == other[1]


@pytest.mark.parametrize("name", METHODS)
def test_arrays_that_are_fetched_ahead_give_the_same_run(blobs: Pair, name: str) -> None:
    assert same(went(data.ahead(blobs, workers=2), name), went(blobs, name))


def test_persons_that_are_fetched_ahead_give_the_same_run(blobs: Pair) -> None:
    people = {"groups": np.arange(200) // 3, "most_rows": 2}
    assert same(went(data.ahead(blobs), **people), went(blobs, **people))


@pytest.mark.parametrize("kind", [records.Records, records.Several, records.Torn, records.Deadly])
def test_a_dataset_that_is_fetched_ahead_gives_the_same_run(blobs: Pair, kind: type[records.Records]) -> None:
    """Also where a record cannot be read, or takes the process with it that reads it: nobody hears of that."""
    assert same(went(data.ahead(kind(blobs), workers=2)), went(kind(blobs)))


def test_chance_in_a_dataset_does_not_depend_on_who_fetches(blobs: Pair) -> None:
    shaken = records.Shaken(blobs)
    one, two = (went(data.ahead(shaken, workers=count)) for count in (1, 2))
    assert same(one, two)
    assert not same(one, went(records.Records(blobs)))


def test_who_fetches_was_never_near_a_key(blobs: Pair, tmp_path: Path) -> None:
    key = Randomness.fresh()
    went(data.ahead(records.Noted(blobs, tmp_path)))
    notes = [tuple(map(int, note.name.split())) for note in tmp_path.iterdir()]
    others = [note for note in notes if note[0] != os.getpid()]  # some rows are looked at before the first draw
    assert others
    assert all(parent != os.getpid() for _, parent, _ in others), "a forked process has all that was in memory"
    assert all(keys == 0 for _, _, keys in others)
    assert not key.seeded  # it was there all the while


class Watched(Columns):
    """Knows who took what."""

    def __init__(self) -> None:
        super().__init__((np.arange(100),))
        self.taken: list[tuple[str, list[int]]] = []

    def take(self, index: np.ndarray) -> Any:
        self.taken.append((threading.current_thread().name.split("_")[0], index.tolist()))
        return super().take(index)


def test_what_is_expected_is_fetched_by_others_once() -> None:
    store, now, later = Watched(), np.arange(5), np.arange(7, 9)
    fetched = Fetched(store, 1)
    fetched.expect(now, 0, 11)
    fetched.expect(later, 1, 12)
    assert [fetched.take(now)[0].tolist() for _ in range(2)] == [now.tolist()] * 2
    assert fetched.take(later)[0].tolist() == later.tolist()
    assert store.taken == [("ahead", now.tolist()), ("ahead", later.tolist())]
    fetched.take(np.array([50]))
    assert store.taken[-1] == ("MainThread", [50])


def test_what_is_past_is_let_go() -> None:
    fetched = Fetched(Watched(), 1)
    for number in range(20):
        fetched.expect(np.arange(number, number + 3), number, 0)
        fetched.expect(np.arange(number + 1, number + 4), number + 1, 0)
        assert len(fetched._coming) <= 3


def test_a_draw_that_comes_otherwise_is_fetched_then(blobs: Pair) -> None:
    """A control may change the batch size between two rounds."""
    store = data.ahead(blobs).as_store()
    store.expect(np.arange(10), 1, 0)
    assert torch.equal(store.take(np.arange(5, 12))[0], blobs[0][5:12])


def test_everybody_at_once_is_not_fetched_ahead(blobs: Pair) -> None:
    dpagd = rt.methods.dpagd()
    examples = data.ahead(blobs)
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    run = rt.Run(
        net, torch.optim.SGD(net.parameters(), lr=0.1), examples, method=dpagd, batch_size=200, rounds=2,
        budget=rt.Budget(4.0, 1e-5), seed=0,
    )  # fmt: skip
    run.step()
    store = run._vault._examples
    assert store.store._coming == {}


def test_it_is_resumed_with_the_same_draws(blobs: Pair, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    settings: dict[str, Any] = {"method": METHODS["dpsgd"], "batch_size": 60, "rounds": 4, "delta": 1e-5, "seed": 0}

    def run(resume: bool) -> rt.Run:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        return rt.Run(net, optimizer, data.ahead(blobs), folder=tmp_path / "run", resume=resume, **settings)

    first = run(False)
    for step in first:
        if step.number == 2:
            break
    first.save()
    del first
    again = run(True)
    for _ in again:
        pass
    weights = torch.cat([part.detach().flatten() for part in net.parameters()])
    assert same((weights, list(again.ledger)), went(blobs))


def test_what_is_said_of_the_examples_is_said_of_those_ahead(blobs: Pair) -> None:
    examples = data.Examples(*blobs, groups=torch.arange(200) // 2)
    ahead = data.ahead(examples)
    assert len(ahead) == 200
    assert ahead.groups is examples.groups
    assert ahead.assumes == ()
    assert len(as_store(ahead)) == 200


def test_what_cannot_be_is_refused(blobs: Pair) -> None:
    with pytest.raises(SettingError, match="at least one worker"):
        data.ahead(blobs, workers=0)

    class Inner(records.Records):
        """No other process can find it."""

    with pytest.raises(DataError, match="define it in a module"):
        went(data.ahead(Inner(blobs)))
