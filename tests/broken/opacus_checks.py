"""Checks of a loop of the user's own: what is shown is what is drawn, a copy of it, and losses stand alone."""

from __future__ import annotations

import contextlib
import io
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from reticent.audits.findings import attempted
from reticent.audits.toy import Known
from reticent.audits.verdict import PROBES
from reticent.errors import ModelError
from reticent.integrations.opacus import PrivacyEngine
from reticent.integrations.opacus.listening import Note, Turn, part_of_batch, wrapped
from reticent.integrations.opacus.module import GradSampleModule
from reticent.integrations.opacus.norms import clipped
from reticent.integrations.opacus.program import Program

X, Y = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 3


def _private(noise: float = 1e-7) -> tuple[PrivacyEngine, Any, Any, Any]:
    model, engine = nn.Linear(3, 3), PrivacyEngine(accountant="rdp")
    loader = DataLoader(TensorDataset(X, Y), batch_size=10)
    sgd = torch.optim.SGD(model.parameters(), lr=1.0)
    with contextlib.redirect_stderr(io.StringIO()):
        made = engine.make_private(
            module=model, optimizer=sgd, data_loader=loader, noise_multiplier=noise, max_grad_norm=1e3
        )
    return engine, *made


def _stepped(*, edit: bool) -> tuple[Tensor, Tensor]:
    """Where a step went, and where the examples shown lead."""
    _, model, optimizer, loader = _private()
    for x, y in loader:
        seen, inner = (torch.tensor(x.tolist()), torch.tensor(y.tolist())), model.to_standard_module()
        loss = functional.cross_entropy(inner(seen[0]), seen[1], reduction="sum") / 10
        wanted = inner.weight.detach() - torch.autograd.grad(loss, inner.weight)[0]
        if edit:
            x.numpy()[:] = 0.0
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        return inner.weight.detach(), wanted
    raise AssertionError("nothing was shown")


def what_is_shown_is_drawn() -> None:
    """A step is that of the examples shown, over the expected size."""
    found, wanted = _stepped(edit=False)
    assert torch.allclose(found, wanted, atol=1e-2), "the step was made of other examples, or divided by their number"


def what_is_shown_is_a_copy() -> None:
    """Nothing that a loop does to a batch reaches the examples in the vault."""
    found, wanted = _stepped(edit=True)
    assert torch.allclose(found, wanted, atol=1e-2), "what the loop did to a batch has reached the vault"


def heard_losses_stand_alone() -> None:
    """A loss that was heard as a mean is each example's own when it is repeated."""
    notes: list[Note] = []
    turn, model = Turn(4, notes.append), GradSampleModule(nn.Linear(3, 3))
    x, y = wrapped((X[:4], Y[:4]), lambda part, path: Note(part_of_batch, path, {}, turn, tuple(part.shape)))
    functional.cross_entropy(model(x), y).backward()
    losses, inner = Program.of(notes[0]).for_each, model.to_standard_module()
    alone = torch.cat([losses(inner, (X[i : i + 1], Y[i : i + 1])) for i in range(40)])
    assert torch.allclose(losses(inner, (X, Y)), alone, atol=1e-5), "a loss depends on who else is in the batch"


def a_number_from_the_batch_is_noticed() -> None:
    """A loss that is weighted by what the loop saw of the batch is another in every step."""
    _, model, optimizer, loader = _private(noise=1.0)
    weight = 1.0
    try:
        for x, y in loader:
            optimizer.zero_grad()
            (functional.cross_entropy(model(x), y) * weight).backward()
            optimizer.step()
            weight = float(x.mean())
    except ModelError:
        return
    raise AssertionError("a number from the batch was taken for a part of the loss")


def every_step_is_in_the_history() -> None:
    """What the accountant says is what the ledger says, also of a step that failed after its release."""
    engine, model, optimizer, loader = _private(noise=1.0)
    optimizer.original_optimizer.register_step_post_hook(_fails)
    for x, y in loader:
        functional.cross_entropy(model(x), y).backward()
        with contextlib.suppress(RuntimeError):
            optimizer.step()
        break
    assert len(engine.accountant) == 1, "a release is missing in the history"


def norms_of_tensors_are_charged_together() -> None:
    """No probe contradicts a list of clip norms: its sensitivity is the root of the sum of their squares."""
    model = Known(4)
    method = clipped("per_layer", [0.3, 0.9, 0.6], 1.0, model, torch.optim.SGD(model.parameters(), lr=1.0))
    assert abs(method.max_grad_norm - 1.26**0.5) < 1e-9, "noise is not for all tensors together"
    for name in ("ledger", "sensitivity", "noise"):
        finding = attempted(name, partial(PROBES[name], method))
        assert finding.holds, finding.says
        assert finding.looked, finding.says


def _fails(*_args: Any) -> None:
    raise RuntimeError


CHECKS = [
    what_is_shown_is_drawn,
    what_is_shown_is_a_copy,
    heard_losses_stand_alone,
    a_number_from_the_batch_is_noticed,
    every_step_is_in_the_history,
    norms_of_tensors_are_charged_together,
]
