"""Fetching ahead on ranks: each has those fetched whom it will look at, and nothing else changes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import runs
import torch
from world import answers

from reticent import data
from reticent.accounting import Ledger, Planned
from reticent.inside import Poisson, Randomness, RoundSettings, Vault, as_store, vault
from reticent.inside.columns import Columns
from reticent.inside.ranks import Ranks
from reticent.inside.shares import Shares

pytestmark = pytest.mark.filterwarnings("ignore::reticent.errors.PrivacyWarning")


def went(examples: Any, **said: Any) -> tuple[list[float], list[Any], int]:
    """Weights, ledger with its seals, and how often the run itself had to fetch in its rounds."""
    run, right, here = runs.make("dpsur", rounds=6, examples=examples, **said), Columns.take, [0]

    def take(self: Columns, index: Any) -> Any:
        here[0] += not threading.current_thread().name.startswith("ahead")
        return right(self, index)

    Columns.take = take  # type: ignore[method-assign]  # in a forked process
    try:
        list(run)
    finally:
        Columns.take = right  # type: ignore[method-assign]
    return runs.weights(run).tolist(), runs.entries(run), here[0]


def test_what_a_rank_looks_at_is_fetched_ahead_and_changes_nothing() -> None:
    x, y = runs.blobs()

    def job(rank: int) -> None:
        mine = range(10) if rank == 0 else range(10, 60)
        part = x[mine.start : mine.stop], y[mine.start : mine.stop]
        for examples, said in (((x, y), {}), (part, {"shard": mine})):
            *plain, by_itself = went(examples, **said)
            *early, left = went(data.ahead(examples), **said)
            assert plain == early
            assert by_itself > 6 > 0 == left, (by_itself, left)

    answers(2, job)


class Some(Ranks):
    """One of so many ranks, without the others."""

    def __init__(self, rank: int, world: int):
        self.rank, self.world = rank, world


def test_chance_in_a_dataset_belongs_to_the_share_not_to_the_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """One process that repeats a round of two ranks has the same rows fetched with the same seeds."""
    expected: list[tuple[int, list[int], int]] = []

    def expect(_examples: Any, index: np.ndarray, number: int, seed: int) -> None:
        expected.append((number, index.tolist(), seed))

    monkeypatch.setattr(vault, "expect", expect)

    def drawn(ranks: Ranks, repeated: Shares) -> list[tuple[int, list[int], int]]:
        expected.clear()
        held = Vault(
            as_store(data.ahead((torch.zeros(60, 1),))),
            randomness=Randomness.from_seed(5),
            ledger=Ledger(),
            allowance=Planned([]),
            ranks=ranks,
        )
        held.repeats(repeated, 2)
        with held.round(0):
            held.draw(Poisson(), RoundSettings(60, 20, 1.0, 1.0))
        return list(expected)

    two = [one for rank in range(2) for one in drawn(Some(rank, 2), Shares(2))]
    assert len(two) == 4
    assert len({seed for _, _, seed in two}) == 4
    assert sorted(drawn(Ranks(), Shares(2))) == sorted(two)
    alone = drawn(Ranks(), Shares(1))
    assert [sorted(index) for _, index, _ in alone] == [
        sorted(two[0][1] + two[2][1]),
        sorted(two[1][1] + two[3][1]),
    ]
