"""The general path: exact where there are no rules, and chosen by itself."""

from __future__ import annotations

import logging

import pytest
import torch
from gradient_oracle import assert_exact, clip, error, loop, loss_of
from torch import nn

from reticent.errors import ModelError
from reticent.gradients import general, norms, norms_and_sum
from reticent.gradients.task import LossTask


class Cubed(nn.Module):
    """No rule knows `cdist`."""

    def __init__(self):
        super().__init__()
        self.before, self.centres = nn.Linear(3, 3), nn.Parameter(torch.randn(2, 3))

    def forward(self, x):
        return torch.cdist(self.before(x), self.centres, p=3.0)


class ByValue(nn.Module):
    """Looks at the values, which `vmap` cannot do."""

    def __init__(self):
        super().__init__()
        self.one, self.centres = nn.Linear(3, 3), nn.Parameter(torch.randn(2, 3))

    def forward(self, x):
        y = self.one(x)
        return torch.cdist(y if bool(y.sum() > -1e9) else -y, self.centres, p=3.0)


class Scripted(nn.Module):
    """Hides its parameters from everybody."""

    def __init__(self):
        super().__init__()
        self.before = nn.Linear(3, 3)
        self.hidden = torch.jit.trace(nn.Linear(3, 2), torch.zeros(1, 3))

    def forward(self, x):
        return self.hidden(self.before(x))


class Penalised(nn.Module):
    """Has a second derivative in its loss."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    def forward(self, x):
        x = x.detach().requires_grad_()
        out = self.inner(x)
        (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        return torch.cat([out, slope], 1)


@pytest.mark.parametrize(
    ("model", "path"),
    [(Cubed(), general.by_vmap), (ByValue(), general.by_loop), (Penalised(), None)],
    ids=["vmap", "loop", "penalty"],
)
def test_what_has_no_rule_is_exact_all_the_same(model, path, caplog):
    x = torch.randn(4, 3)
    with caplog.at_level(logging.WARNING):
        assert_exact(model, x)
    assert path is None or general.path(LossTask.of(model, loss_of), x) is path


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*torch.jit.*")
def test_parameters_hidden_from_the_tape_are_found(caplog):
    model, x = Scripted(), torch.randn(4, 3)
    found = norms_and_sum(model, loss_of, x, clip)
    assert "hidden.weight" in caplog.text or "hidden.bias" in caplog.text
    assert error(found, loop(model, loss_of, x)) < 1e-5


def test_the_log_names_the_module_once(caplog):
    model = nn.Sequential(nn.Linear(3, 3), Cubed())
    for _ in range(3):
        norms(model, loss_of, torch.randn(4, 3))
    assert len(caplog.records) == 1
    assert "1.centres" in caplog.text


@pytest.mark.parametrize("loss", [lambda m, x: m(x).mean(), lambda m, x: m(x), lambda m, x: 1.0])
def test_a_loss_that_is_not_one_number_per_example_is_refused(loss):
    with pytest.raises(ModelError, match=r"one number per example.*reduction='none'"):
        norms(nn.Linear(3, 2), loss, torch.randn(4, 3))


def test_a_mistake_in_the_model_is_shown_as_it_is():
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        norms(nn.Linear(5, 2), loss_of, torch.randn(4, 3))
