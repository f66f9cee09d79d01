"""What a model asks of all examples together decides its way only if each alone would go the same."""

from __future__ import annotations

import pytest
import torch
from gradient_oracle import clip, error, loop
from torch import nn

from reticent.gradients import general, norms_and_sum
from reticent.gradients.tape import NoRule
from reticent.gradients.telling import Told

QUESTIONS = {
    "longest": lambda x: x.abs().max().item() <= 1,
    "smallest": lambda x: x.abs().amax().item() < 1,
    "all": lambda x: bool((x.abs() <= 1).all()),
    "any": lambda x: not (x.abs() > 1).any(),
    "in": lambda x: True not in (x.abs() > 1),
    "number on the left": lambda x: x.abs().max().item() < 1,
}


def losses_by(question):
    def losses(model, x):
        out = model(x)
        return (out if question(x) else 2 * out.sin()).square().sum(1)

    return losses


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("rows", ["all within", "all beyond", "some beyond"])
def test_every_example_goes_the_way_it_would_go_alone(name, rows, monkeypatch):
    model, x = nn.Linear(3, 2), torch.rand(5, 3) * 0.5
    if rows != "all within":
        x[slice(None) if rows == "all beyond" else slice(1, 3)] += 2
    ways = []
    monkeypatch.setattr(general, "written_out", lambda *args, own=general.written_out: ways.append(1) or own(*args))
    losses = losses_by(QUESTIONS[name])
    assert error(norms_and_sum(model, losses, x, clip), loop(model, losses, x)) < 1e-5
    assert bool(ways) == (rows == "some beyond")


MORE = {
    "as a size": lambda x: torch.ones(int(x.max().item() * 4)).sum(),
    "as an index": lambda x: x[:, : (x * 4).long().max().item()].sum(1),
    "in a product": lambda x: x * x.max().item(),
    "as a limit": lambda x: range((x * 4).long().max().item()),
    "in a tensor": lambda x: torch.full((2,), x.max().item()),
    "in words": lambda x: print(f"{x.max().item()}"),
    "as another number": lambda x: (x.max() + 1).item() <= 3,
    "with itself": lambda x: x.max().item() <= x.min().item(),
}


@pytest.mark.parametrize("name", MORE)
def test_more_than_a_comparison_ends_it(name, caplog):
    def losses(model, x):
        MORE[name](x)
        return model(x).square().sum(1)

    model, x = nn.Linear(3, 2), torch.rand(5, 3)
    model_norms, _ = norms_and_sum(model, losses, x, clip)
    assert "general path" in caplog.text
    assert torch.isfinite(model_norms).all()


def test_nothing_else_can_be_asked_of_a_number():
    told = Told([1, 2])
    assert told <= 2
    for ask in (int, float, str, bool, hash, repr, abs, lambda t: t + 1, lambda t: [1, 2, 3][t], lambda t: t <= 1):
        with pytest.raises(NoRule):
            ask(told)
