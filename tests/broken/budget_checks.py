"""Fast checks of who pays for what between runs; each mutant beside this file makes one of them fail."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

import reticent as rt
from reticent.accounting import Gaussian
from reticent.budgets import DatasetBudget
from reticent.errors import ReticentError
from reticent.inside import Everyone, Randomness, RightAnswers, RoundSettings, as_store
from reticent.tuning.judges import PrivateJudges

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


def what_is_public_is_said_of_some_examples() -> None:
    """Weights that owe nothing to the examples of one run may owe something to those of the next."""
    first = a_run()
    first.step()
    second = a_run(first.model, initial="public")
    second.step()
    assert refused(lambda: a_run(first.model, initial=second))


class _OddWhenJudged(nn.Linear):
    """Keeps the first row and centres all of them, when it is not trained."""

    def __init__(self) -> None:
        super().__init__(2, 2)
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return super().forward(x)
        self.seen.copy_(x[0])
        return super().forward(x - x.mean(0))


def private_judges_are_not_kept() -> None:
    """What a model keeps of a private judge is put back, and it is refused."""
    judges = PrivateJudges(as_store((torch.rand(4, 2), torch.zeros(4, dtype=torch.long))), 5.0)
    model = _OddWhenJudged()
    assert refused(lambda: judges.score(model, 0, Randomness.from_seed(0)))
    assert not model.seen.any()


def a_private_judge_is_one_at_most() -> None:
    """Whatever a model does with a batch, one judge more or less changes the count by one."""
    rows, counts = torch.rand(20, 2), []
    for far in (0.0, 1e4):
        x = rows.clone()
        x[0] += far
        vault = PrivateJudges(as_store((x, torch.zeros(20, dtype=torch.long))), 5.0)._vault(Randomness.from_seed(0))
        draw = vault.draw(Everyone(), RoundSettings(20, 20, 1.0, 5.0))
        model = _OddWhenJudged()
        with torch.no_grad():
            model.weight.copy_(torch.tensor([[1.0, 1.0], [-1.0, -1.0]]))
            model.bias.copy_(torch.tensor([0.0, 1e-3]))
        counts.append(float(vault.ask(RightAnswers(model), draw)._value))
    assert abs(counts[0] - counts[1]) <= 1


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
    what_is_public_is_said_of_some_examples,
    private_judges_are_not_kept,
    a_private_judge_is_one_at_most,
    a_cap_is_kept,
    runs_are_charged,
    what_was_released_is_not_given_back,
    a_settled_run_is_over,
]
