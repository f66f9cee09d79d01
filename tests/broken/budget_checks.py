"""Fast checks of who pays for what between runs; each mutant beside this file makes one of them fail."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

import reticent as rt
from reticent.accounting import Gaussian
from reticent.budgets import DatasetBudget
from reticent.errors import ReticentError

X, Y = torch.randn(60, 2, generator=torch.Generator().manual_seed(0)), torch.arange(60) % 2


def a_run(model: nn.Module | None = None, **settings: object) -> rt.Run:
    model = nn.Linear(2, 2) if model is None else model
    given = {"method": rt.methods.dpsgd(noise_multiplier=2.0), "batch_size": 6, "rounds": 3, "size": 60, "delta": 1e-5}
    return rt.Run(model, torch.optim.SGD(model.parameters(), lr=0.1), (X, Y), **(given | settings))  # type: ignore[arg-type]


@contextmanager
def a_dataset() -> Iterator[tuple[DatasetBudget, Path]]:
    with tempfile.TemporaryDirectory() as place:
        yield rt.DatasetLedger(Path(place) / "ledger.sqlite").create("a", epsilon=2.0, delta=1e-5), Path(place)


def refused(act: Callable[[], object]) -> bool:
    try:
        act()
    except ReticentError:
        return True
    return False


def trained_weights_are_not_new() -> None:
    """A model that was trained is trained again only if it is said where its weights come from."""
    run = a_run()
    run.step()
    assert refused(lambda: a_run(run.model))


def both_runs_are_priced() -> None:
    """What is stated of the second run is no less than the price of the events of both."""
    first = a_run()
    list(first)
    second = a_run(first.model, initial=first)
    assert second.guarantee().epsilon >= rt.accounting.price(list(first.ledger.tally()) * 6, 1e-5).epsilon


def a_cap_is_kept() -> None:
    """The sum of all charges stays below the cap."""
    with a_dataset() as (dataset, _):
        refused(lambda: [dataset.charge(Gaussian(5.0), note="") for _ in range(50)])
        assert dataset.share() <= 1


def runs_are_charged() -> None:
    """Whatever a run releases is in the sum before it is released."""
    with a_dataset() as (dataset, folder):
        refused(lambda: a_run(dataset=dataset, folder=folder / "run").step())
        assert dataset.share() > 0


def what_was_released_is_not_given_back() -> None:
    """A folder whose ledger has lost rounds is not settled by it."""
    with a_dataset() as (dataset, folder):
        list(a_run(dataset=dataset, folder=folder / "run"))
        (folder / "run" / "ledger.jsonl").write_bytes(b"")
        refused(lambda: rt.DatasetLedger(folder / "ledger.sqlite").settle(folder / "run"))
        assert dataset.share() > 0


def a_settled_run_is_over() -> None:
    """A run whose charge was given back releases nothing more."""
    with a_dataset() as (dataset, folder):
        a_run(dataset=dataset, folder=folder / "run")
        rt.DatasetLedger(folder / "ledger.sqlite").settle(folder / "run")
        assert refused(lambda: a_run(dataset=dataset, folder=folder / "run", resume=True).step())


CHECKS: list[Callable[[], None]] = [
    trained_weights_are_not_new,
    both_runs_are_priced,
    a_cap_is_kept,
    runs_are_charged,
    what_was_released_is_not_given_back,
    a_settled_run_is_over,
]
