"""Planning proves the rules: a wrong one is caught before it is used."""

from __future__ import annotations

import weakref

import pytest
import torch
from gradient_oracle import assert_exact, clip, each_row, error, loss_of
from torch import nn
from torch.nn import functional

from reticent.gradients import norms, norms_and_sum, planning
from reticent.gradients.forms import Dense, Outer
from reticent.gradients.layouts import Layout, find
from reticent.gradients.registry import RULES, Rule
from reticent.gradients.rules.linear import linear


def forgets_the_bias(use, input, weight, bias=None):
    """Counts no bias (mutation M13)."""

    def forms(gradient):
        yield weight, Outer(use.positions(gradient), use.positions(input))

    return use.tap(functional.linear(input, use.plain(weight), use.plain(bias)), (weight,), forms)


def squares_before_adding(use, input, weight, bias=None):
    """Takes the norm of each position by itself: too small or too large, never right (mutation M14)."""

    def forms(gradient):
        yield weight, Dense(torch.bmm(use.positions(gradient).abs().mT, use.positions(input)))
        yield bias, Dense(use.positions(gradient).sum(1))

    return use.tap(functional.linear(input, use.plain(weight), use.plain(bias)), (weight, bias), forms)


def mixes_up_examples_and_positions(use, input, weight, bias=None):
    """Takes the second axis for the examples."""
    return linear(use.at(Layout.SECOND), input, weight, bias)


@pytest.mark.parametrize("wrong", [forgets_the_bias, squares_before_adding, mixes_up_examples_and_positions])
def test_a_planted_wrong_rule_is_caught_and_not_used(wrong, monkeypatch, caplog):
    monkeypatch.setitem(RULES, functional.linear, Rule(wrong))
    model, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), torch.randn(5, 5, 3)
    found = norms_and_sum(model, loss_of, x, clip)
    assert "general path" in caplog.text
    assert error(found, each_row(model, loss_of, x)) < 1e-5


@pytest.mark.parametrize("wrong", [forgets_the_bias, squares_before_adding])
def test_the_oracle_of_these_tests_catches_it_as_well(wrong, monkeypatch):
    monkeypatch.setattr("reticent.gradients.planning._prove", lambda *_: None)
    monkeypatch.setitem(RULES, functional.linear, Rule(wrong))
    with pytest.raises(AssertionError):
        assert_exact(nn.Linear(3, 4), torch.randn(4, 5, 3))


def reached(layout, n=3, positions=4):
    """Gradients that reach the entries of one example each."""
    found = []
    for i in range(n):
        owner = torch.arange(n)[:, None].expand(n, positions) == i
        match layout:
            case Layout.FIRST:
                found.append(owner)
            case Layout.SECOND:
                found.append(owner.T)
            case Layout.MAJOR:
                found.append(owner.flatten())
            case Layout.MINOR:
                found.append(owner.T.flatten())
            case Layout.NOWHERE:
                found.append(torch.ones_like(owner))
    return found


@pytest.mark.parametrize("positions", [2, 3, 4])
@pytest.mark.parametrize("layout", list(Layout))
def test_layouts_are_found_from_what_each_loss_reaches(layout, positions):
    gradients = reached(layout, positions=positions)
    assert find(gradients) is layout
    if layout is not Layout.NOWHERE:
        own = torch.stack([layout.first(gradient, 3).flatten(1).any(1) for gradient in gradients])
        assert torch.equal(own, torch.eye(3, dtype=torch.bool))


def test_a_model_that_mixes_examples_is_left_to_the_general_path(caplog):
    class Centred(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(3, 4), nn.Linear(4, 2)

        def forward(self, x):
            y = self.one(x)
            return self.two(y - y.mean(0))

    norms_and_sum(Centred(), loss_of, torch.randn(4, 3), clip)
    assert "one.weight" in caplog.text


def test_the_proof_holds_one_examples_gradient_at_a_time(monkeypatch):
    """A large model has no room for more."""
    seen: list[weakref.ref[torch.Tensor]] = []
    real = planning.gradients_of

    def watched(*args, **kwargs):
        assert not any(gradient() is not None for gradient in seen), "an earlier example's gradient is still held"
        found = real(*args, **kwargs)
        seen.extend(weakref.ref(gradient) for gradient in found.values())
        return found

    monkeypatch.setattr(planning, "gradients_of", watched)
    norms(nn.Linear(4, 3), lambda model, x: model(x).sum(1), torch.randn(5, 4))
    assert len(seen) == 2 * planning.PROBED


class TimeFirst(nn.Module):
    """Flattens [time, examples, width], as recurrent code does; what comes after the layer may start at zero."""

    def __init__(self, start):
        super().__init__()
        torch.manual_seed(1)
        self.layer, self.out, self.gate = nn.Linear(4, 4), nn.Linear(4, 2), nn.Parameter(torch.ones(()))
        if start == "head at zero":
            nn.init.zeros_(self.out.weight)
        elif start == "equal head":
            nn.init.constant_(self.out.weight, 0.5)
        elif start == "gate at zero":
            nn.init.zeros_(self.gate)

    def forward(self, x):
        steps = x.transpose(0, 1)
        inner = self.layer(steps.flatten(0, 1)).relu().reshape(steps.shape).transpose(0, 1)
        return self.out((x + self.gate * inner).mean(1))


@pytest.mark.parametrize("start", ["usual", "head at zero", "equal head", "gate at zero"])
def test_weights_that_hide_the_examples_at_first_do_not_mislead_later(start):
    """The plan is made once: zeros fit every layout, and the first one that fits would be wrong from the next step."""
    model = TimeFirst(start)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    x, y = torch.randn(5, 6, 4), torch.tensor([0, 1, 0, 1, 1])

    def losses(model, batch):
        return nn.functional.cross_entropy(model(batch[0]), batch[1], reduction="none")

    def each():
        alone = []
        for i in range(5):
            model.zero_grad()
            losses(model, (x[i : i + 1], y[i : i + 1])).sum().backward()
            alone.append(torch.cat([p.grad.flatten() for p in model.parameters()]).norm())
        return torch.stack(alone)

    norms(model, losses, (x, y))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items()), "weights are given back"
    [plan] = planning._plans[model].values()
    assert plan.layouts["linear", ("layer.weight", "layer.bias")] is Layout.MINOR
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter))
    torch.testing.assert_close(norms(model, losses, (x, y)), each())


def test_what_no_weights_reveal_takes_the_general_path(caplog):
    class Cut(nn.Module):
        """The layer's output counts for nothing, whatever the weights are, though it leads to the loss."""

        def __init__(self):
            super().__init__()
            self.layer, self.out = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x):
            return self.out(x.mean(1)) + 0 * self.layer(x.transpose(0, 1).flatten(0, 1)).sum()

    norms(Cut(), lambda model, x: model(x).sum(1), torch.randn(5, 6, 4))
    assert "general path" in caplog.text


def test_a_layer_that_leads_nowhere_costs_no_speed(caplog):
    class Spare(nn.Module):
        def __init__(self):
            super().__init__()
            self.spare, self.out = nn.Linear(4, 5), nn.Linear(4, 2)

        def forward(self, x):
            self.spare(x)
            return self.out(x)

    norms(Spare(), lambda model, x: model(x).sum(1), torch.randn(5, 4))
    assert "general path" not in caplog.text


class Sideways(nn.Module):
    """A recurrent layer that takes the examples for time: it mixes them, which only gradients can show."""

    def __init__(self, start):
        super().__init__()
        torch.manual_seed(1)
        self.rnn, self.out = nn.GRU(4, 4), nn.Linear(4, 2)
        if start == "head at zero":
            nn.init.zeros_(self.out.weight)

    def forward(self, x):
        return self.out(self.rnn(x)[0].mean(1))


@pytest.mark.parametrize("start", ["usual", "head at zero"])
def test_recurrent_layers_are_proved_where_gradients_are(start, caplog):
    norms(Sideways(start), lambda model, x: model(x).sum(1), torch.randn(5, 6, 4))
    assert "general path" in caplog.text
