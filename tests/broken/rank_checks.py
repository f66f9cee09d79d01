"""Fast checks of a run on two ranks; each mutant beside this file makes one of them fail."""

from __future__ import annotations

import math
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from reticent.accounting import Gaussian, Ledger, Planned
from reticent.accounting.ledger import read_ledger
from reticent.budgets.reserving import Reservation
from reticent.errors import RankError, ReticentError
from reticent.inside import Drawn, Everyone, GaussianNoise, Randomness, RoundSettings, Vault, as_store
from reticent.inside.lattice import BLOCK
from reticent.inside.ranks import Ranks
from reticent.inside.several import here

sys.path.append(str(Path(__file__).parents[1] / "ranks"))

from world import answers, on_ranks

SIZE = 10


class Everybody:
    """Each example counts one, in every place of a long answer."""

    sensitivity = 1.0

    def answer(self, drawn: Drawn) -> Tensor:
        return torch.full((2 * BLOCK,), float(sum(len(batch[0]) for batch in drawn.batches())), dtype=torch.float64)


def told(ledger: Path | None = None, noise: float = 1.0, ranks: Ranks | None = None) -> Tensor:
    """What one noisy count of everybody comes to."""
    vault = Vault(
        as_store((torch.zeros(SIZE, 1),)),
        randomness=Randomness.from_seed(5),
        ledger=Ledger(ledger),
        allowance=Planned([Gaussian(noise)]),
        ranks=here() if ranks is None else ranks,
    )
    draw = vault.draw(Everyone(), RoundSettings(SIZE, SIZE, 1.0, noise))
    return vault.release(vault.ask(Everybody(), draw), GaussianNoise(noise))


def everybody_counts_once_with_noise_once() -> None:
    """The sum over ranks is that over the examples, and its noise is as declared, the same for all."""
    found = answers(2, lambda _rank: told())
    assert all(torch.equal(one, found[0]) for one in found)
    for half in found[0].split(BLOCK):
        assert abs(float(half.mean()) - SIZE) < 6 / math.sqrt(BLOCK)
        assert abs(float(half.std()) - 1) < 0.02


def ranks_draw_alike() -> None:
    """Every rank has the same draw, and divides it."""
    import runs

    def job(_rank: int) -> list[list[int]]:
        run, drawn, right = runs.make(rounds=3), [], Vault.draw

        def draw(self: Vault, *asked: Any) -> Any:
            found = right(self, *asked)
            drawn.append(found._index.tolist())
            return found

        Vault.draw = draw  # type: ignore[method-assign]  # in a forked process
        list(run)
        return drawn

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, two = on_ranks(2, job)
    assert isinstance(one, list), one  # a key of one's own is noticed before the first draw
    assert one == two


def one_rank_charges() -> None:
    """A plan is charged to its dataset once, and the ledger has one line for each release."""
    import runs

    from reticent import DatasetLedger

    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        budget = DatasetLedger(Path(place) / "budget.sqlite").create("blobs", epsilon=50.0, delta=1e-3)

        def job(_rank: int) -> int:
            charged, right = [], Reservation.make

            def make(self: Reservation, *said: Any, **named: Any) -> None:
                charged.append(self.run)
                right(self, *said, **named)

            Reservation.make = make  # type: ignore[method-assign]  # in a forked process
            mine = DatasetLedger(Path(place) / "budget.sqlite")["blobs"]
            run = runs.make(rounds=3, seed=None, dataset=mine, delta=1e-5, size=60)
            list(run)
            return len(charged)

        assert answers(2, job) == [1, 0]
        assert budget.share() > 0


def nobody_goes_on_before_the_ledger_is_on_disk() -> None:
    """When a rank makes noise, the release is in the file, however slow the disk is."""
    import time

    from reticent.accounting.journal import Journal

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "ledger.jsonl"

        def job(rank: int) -> bool:
            written, fill, append = [], Randomness.fill, Journal.append

            def watched(self: Randomness, out: Any, *at: Any) -> None:
                if "noise" in at:
                    written.append(path.exists() and len(read_ledger(path).entries) == 1)
                fill(self, out, *at)

            def slow(self: Journal, line: bytes) -> None:
                time.sleep(0.5)
                append(self, line)

            Randomness.fill, Journal.append = watched, slow  # type: ignore[method-assign]  # in a forked process
            told(None if rank else path)
            return bool(written) and all(written)

        assert answers(2, job) == [True, True]


def ranks_that_differ_are_refused() -> None:
    """Two rows in each other's place, another activation, the same rows as two shards, weights that come apart."""
    import runs
    from torch import nn

    x, y = torch.randn(600, 4, generator=torch.Generator().manual_seed(1)), torch.arange(600) % 2

    def begun(**said: Any) -> bool:
        try:
            runs.make(rounds=2, **said)
        except ReticentError:
            return False
        return True

    def job(rank: int) -> list[bool]:
        order = torch.arange(600)
        order[[100, 101]] = order[[101, 100]] if rank else order[[100, 101]]
        went = [
            begun(examples=(x[order], y[order])),
            begun(model=nn.Sequential(nn.Linear(4, 2), nn.ReLU() if rank else nn.Tanh())),
            begun(examples=(x, y), shard=range(600 * rank, 600 * rank + 600)),
        ]
        run = runs.make(rounds=2)
        run._task.flat.vector[0] += rank
        try:
            run.step()
        except RankError:
            return [*went, False]
        return [*went, True]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert answers(2, job) == [[False] * 4] * 2


CHECKS: list[Callable[[], None]] = [
    everybody_counts_once_with_noise_once,
    ranks_draw_alike,
    one_rank_charges,
    nobody_goes_on_before_the_ledger_is_on_disk,
    ranks_that_differ_are_refused,
]
