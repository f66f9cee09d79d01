"""Checks of losses as people write them: each example's is its own, nothing real is tried, another one is noticed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from reticent.errors import ResumeError
from reticent.inside import Drawn, Everyone, Flat, LossGain, Query, RoundSettings, StepScores, Task, as_store
from reticent.losses import per_example
from reticent.methods import dpsgd
from reticent.run import Run

X, Y = torch.randn(30, 3, generator=torch.Generator().manual_seed(0)), torch.arange(30) % 3
PLAIN = dpsgd(noise_multiplier=1.0)


def _run(model: nn.Module, loss: nn.Module | None, folder: str | None = None, *, x: Tensor = X) -> Run:
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    settings = {"batch_size": 10, "rounds": 2, "delta": 1e-5, "folder": folder, "resume": folder is not None}
    return Run(model, sgd, (x, Y), method=PLAIN, loss=loss, **settings)  # type: ignore[arg-type]


def losses_stand_alone() -> None:
    """Torch's means and sums are left out, weights of the labels that happen to be there too."""
    model = nn.Linear(3, 3)
    for loss in (nn.CrossEntropyLoss(), nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0]), reduction="sum")):
        losses = per_example(loss, model, (X[:4], Y[:4]))
        together = losses(model, (X, Y))
        alone = torch.cat([losses(model, (X[i : i + 1], Y[i : i + 1])) for i in range(len(X))])
        assert torch.allclose(together, alone, atol=1e-5), "a loss depends on who else is in the batch"


class Watching(nn.Module):
    """Notes whether it met a real example."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.met = nn.Linear(3, 3), False

    def forward(self, x: Tensor) -> Tensor:
        object.__setattr__(self, "met", self.met or bool((x == 1234.5).any()))
        return self.layer(x)  # type: ignore[no-any-return]


def nothing_real_is_tried() -> None:
    """A loss is chosen and understood on made-up rows: no example meets the model before the first round."""
    for loss in (None, nn.CrossEntropyLoss()):
        model = Watching()
        _run(model, loss, x=torch.full_like(X, 1234.5))
        assert not model.met, "a real example was tried before the run"


def another_loss_is_noticed() -> None:
    """A run goes on with the weights of classes that it began with, and with no others."""
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        _run(nn.Linear(3, 3), nn.CrossEntropyLoss(weight=torch.ones(3)), folder).step()
        try:
            torch.manual_seed(0)
            _run(nn.Linear(3, 3), nn.CrossEntropyLoss(weight=torch.tensor([1.0, 1.0, 2.0])), folder)
        except ResumeError:
            return
    raise AssertionError("a run went on with another loss")


class Crowded(nn.Linear):
    """Mixes examples where there are more of them than any check has seen together."""

    def __init__(self, most: int) -> None:
        super().__init__(1, 1, bias=False)
        self.most = most

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x - x.mean(0) if len(x) > self.most else x)


def _moved_by_one(query: Callable[[Task], Query]) -> float:
    """How far one example moves the answer about 600."""
    answers, x = [], torch.linspace(0.0, 0.5, 600).unsqueeze(1)
    for first in (0.0, 1e4):
        x[0] = first
        model = Crowded(64)
        nn.init.ones_(model.weight)
        task = Task(model, lambda net, batch: net(batch[0])[:, 0], Flat(model))
        settings, rng = RoundSettings(600, 600, 1.0, 1.0), np.random.default_rng(0)
        drawn = Drawn(Everyone().draw(settings, 600, rng, {}), rng, {}, as_store((x,)))
        answers.append(query(task).answer(drawn))
    return float((answers[0] - answers[1]).abs().max())


def losses_are_summed_as_they_were_checked() -> None:
    """No more examples are evaluated together than were in the check, where each must count for one."""
    assert _moved_by_one(lambda task: LossGain(task, torch.zeros(1), 1.0)) <= 1
    assert _moved_by_one(lambda task: StepScores(task, torch.ones(1), torch.ones(1), (0.5, 2.0), 1.0)) <= 1


CHECKS: list[Callable[[], None]] = [
    losses_stand_alone,
    nothing_real_is_tried,
    another_loss_is_noticed,
    losses_are_summed_as_they_were_checked,
]
