"""Examples of several rows: one gradient each, whatever the rows are, and as fast as rows where rules can follow."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from reticent.gradients import check, norms_and_sum
from reticent.gradients.batches import chosen
from reticent.gradients.forms import Lookup, Outer
from reticent.gradients.grouped import Grouped, GroupedLoss, alike, rows_each
from reticent.gradients.planning import plan_of
from reticent.gradients.task import LossTask
from reticent.losses import cross_entropy

PERSONS, BOUND = 6, 0.3
LOSS = GroupedLoss(cross_entropy)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.lstm, self.out = nn.Embedding(9, 5), nn.LSTM(5, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.lstm(self.words(x))[0][:, -1])


MODELS = {
    "linear": lambda: nn.Linear(6, 3),
    "mlp": lambda: nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 3)),
    "norm": lambda: nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3)),
    "cnn": lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)),
    "words": lambda: nn.Sequential(nn.Embedding(9, 5), nn.Flatten(), nn.Linear(20, 3)),
    "lstm": Recurrent,
}


def people(name: str, rows: int, persons: int = PERSONS) -> Grouped:
    torch.manual_seed(rows)
    shapes = {"cnn": (1, 6, 6), "words": (4,), "lstm": (4,)}
    shape = (persons, rows, *shapes.get(name, (6,)))
    x = torch.randint(9, shape) if name in ("words", "lstm") else torch.randn(shape)
    weights = torch.rand(persons, rows) + 0.1
    weights[0, 1:] = 0.0
    return Grouped((x, torch.randint(3, (persons, rows))), weights)


def one_by_one(model: nn.Module, batch: Grouped) -> tuple[Tensor, Tensor]:
    """Every person's gradient by autograd, row after row; then clipped and added up."""
    parameters, norms, total = list(model.parameters()), [], 0.0
    for x, y, weights in zip(*batch.rows, batch.weights, strict=True):
        losses = torch.stack([cross_entropy(model, (x[i : i + 1], y[i : i + 1]))[0] for i in range(len(y))])
        parts = torch.autograd.grad((losses * weights).sum(), parameters)
        mine = torch.cat([part.flatten() for part in parts]).double()
        norms.append(mine.norm())
        total = total + mine * min(1.0, BOUND / float(mine.norm()))
    return torch.stack(norms), total


def clipped(model: nn.Module, batch: Grouped, **options: int) -> tuple[Tensor, Tensor]:
    found, sums = norms_and_sum(model, LOSS, batch, lambda norms: (BOUND / norms).clamp(max=1), **options)
    return found, torch.cat([part.flatten() for part in sums.values()])


@pytest.mark.parametrize("rows", [1, 2, 5, 20])
@pytest.mark.parametrize("name", MODELS)
def test_norms_and_sum_are_those_of_a_loop_over_persons(name: str, rows: int) -> None:
    model, batch = MODELS[name](), people(name, rows)
    norms, total = clipped(model, batch)
    true_norms, true_total = one_by_one(model, batch)
    torch.testing.assert_close(norms.double(), true_norms, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(total.double(), true_total, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [1, 4, 32])
@pytest.mark.parametrize("name", ["linear", "mlp", "norm", "cnn", "words"])
def test_the_rules_follow_the_rows_of_a_person(name: str, rows: int) -> None:
    model, batch = MODELS[name](), people(name, rows)
    assert plan_of(LossTask.of(model, LOSS), batch) is not None


def test_memory_is_planned_for_as_many_rows_as_there_are() -> None:
    model = MODELS["cnn"]()
    few, many = (plan_of(LossTask.of(model, LOSS), people("cnn", rows)) for rows in (1, 16))
    assert few is not None
    assert many is not None
    assert many.at_once < few.at_once / 4


def test_micro_batches_change_nothing() -> None:
    model, batch = MODELS["mlp"](), people("mlp", 4)
    for mine, theirs in zip(clipped(model, batch), clipped(model, batch, max_physical_batch_size=2), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_a_row_without_weight_counts_for_nothing() -> None:
    model, batch = MODELS["mlp"](), people("mlp", 4)
    other = Grouped((batch.rows[0].clone(), batch.rows[1].clone()), batch.weights)
    other.rows[0][0, 1:] = 100.0
    for mine, theirs in zip(clipped(model, batch), clipped(model, other), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("form", [
    Outer(torch.randn(4, 3, 5, dtype=torch.float64), torch.randn(4, 3, 2, dtype=torch.float64)),
    Outer(torch.randn(4, 30, 5, dtype=torch.float64), torch.randn(4, 30, 2, dtype=torch.float64)),
    Lookup(torch.randint(6, (4, 9)), torch.randn(4, 9, 3, dtype=torch.float64), 6),
    Lookup(torch.randint(6, (4, 9)), torch.randn(4, 9, 3, dtype=torch.float64), 60),
], ids=["few rows", "many rows", "words", "words of a long table"])  # fmt: skip
def test_adding_up_first_changes_no_gradient(form: Outer | Lookup) -> None:
    weights = torch.rand(4, dtype=torch.float64)
    for same in (form.added(), form.added().measure()[1]):
        total = torch.zeros(form.dense().shape[1:], dtype=torch.float64)
        same.add_to(total, weights)
        torch.testing.assert_close(same.dense(), form.dense())
        torch.testing.assert_close(total, torch.tensordot(weights, form.dense(), 1))
    torch.testing.assert_close(form.added().measure()[0], form.measure()[0])


def test_rows_that_cancel_are_not_rounded_into_the_others_sum() -> None:
    """Two rows of a million times the bound, one the other's opposite: the sum of the others keeps its digits."""
    model = nn.Linear(64, 32, bias=False)
    torch.manual_seed(0)
    x = torch.randn(2, 2, 64) / 100
    x[1] *= 1e8
    x[1, 1] = -x[1, 0]

    def outputs(model: nn.Module, batch: Tensor) -> Tensor:
        return model(batch).sum(1)

    def total(batch: Grouped) -> Tensor:
        _, sums = norms_and_sum(model, GroupedLoss(outputs), batch, lambda norms: (1 / norms).clamp(max=1))
        return sums["weight"]

    both = Grouped(x, torch.full((2, 2), 0.5))
    torch.testing.assert_close(total(both), total(chosen(both, torch.tensor([0]))), rtol=1e-5, atol=1e-7)


def test_plain_rows_keep_their_loss_and_public_ones_are_grouped_alike() -> None:
    model, (x, y) = nn.Linear(6, 3), (torch.randn(5, 6), torch.arange(5) % 3)
    assert torch.equal(LOSS(model, (x, y)), cross_entropy(model, (x, y)))
    batch = people("linear", 4)
    grouped = alike((x, y), batch)
    assert rows_each(grouped) == 4
    assert grouped.rows[0].shape == batch.rows[0].shape
    assert torch.equal(grouped.rows[1].flatten()[:5], y)
    assert alike((x, y), (x, y))[0] is x


def test_public_rows_prove_the_rules_for_persons() -> None:
    """A model that runs on no made-up rows is still followed, at any number of rows."""

    class Picky(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(9, 3)

        def forward(self, x: Tensor) -> Tensor:
            if not bool((x.detach()[..., -1] == 8).all()):
                raise ValueError("every row must end with 8")
            return self.table(x).mean(1)

    def checked(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return cross_entropy(model, batch)

    x = torch.randint(8, (5, 4))
    x[:, -1] = 8
    public, model = (x, torch.arange(5) % 3), Picky()
    check(model, GroupedLoss(checked), (torch.zeros(4, 4, dtype=torch.long), torch.zeros(4).long()), probes=public)
    for rows in (1, 3):
        batch = alike(public, people("words", rows))
        norms, total = clipped(model, batch)
        true_norms, true_total = one_by_one(model, batch)
        torch.testing.assert_close(norms.double(), true_norms, rtol=1e-5, atol=1e-7)
        torch.testing.assert_close(total.double(), true_total, rtol=1e-5, atol=1e-6)
