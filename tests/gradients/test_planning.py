"""Planning proves the rules: a wrong one is caught before it is used."""

from __future__ import annotations

import weakref

import pytest
import torch
from gradient_oracle import assert_exact, clip, each_row, error, loss_of
from torch import nn
from torch.nn import functional

from reticent.gradients import norms, norms_and_sum, planning, proving
from reticent.gradients.following import Place
from reticent.gradients.forms import Dense, Outer
from reticent.gradients.layouts import Layout
from reticent.gradients.probes import remember
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
    monkeypatch.setattr("reticent.gradients.planning.prove", lambda *_: None)
    monkeypatch.setitem(RULES, functional.linear, Rule(wrong))
    with pytest.raises(AssertionError):
        assert_exact(nn.Linear(3, 4), torch.randn(4, 5, 3))


PLACES = {
    Layout.FIRST: (Place(0), torch.arange(3)[:, None].expand(3, 4)),
    Layout.SECOND: (Place(1), torch.arange(3).expand(4, 3)),
    Layout.MAJOR: (Place(0, after=4), torch.arange(3).repeat_interleave(4)),
    Layout.MINOR: (Place(0, before=4), torch.arange(3).repeat(4)),
}


@pytest.mark.parametrize("layout", list(Layout))
def test_a_layout_shows_each_example_its_own(layout):
    place, owners = PLACES[layout]
    assert Layout.of(place) is layout
    own = layout.first(owners, 3)
    assert torch.equal(own, torch.arange(3)[:, None].expand_as(own))


@pytest.mark.parametrize("place", [Place(2), Place(1, after=2), Place(0, 2, 2), Place(0, order=torch.arange(3))])
def test_no_rule_is_used_where_none_was_written_for(place):
    assert Layout.of(place) is None


def test_a_model_that_mixes_examples_is_left_to_the_general_path(caplog):
    class Centred(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(3, 4), nn.Linear(4, 2)

        def forward(self, x):
            y = self.one(x)
            return self.two(y - y.mean(0))

    norms_and_sum(Centred(), loss_of, torch.randn(4, 3), clip)
    assert "goes across examples" in caplog.text


def test_the_proof_holds_one_examples_gradient_at_a_time(monkeypatch):
    """A large model has no room for more."""
    seen: list[weakref.ref[torch.Tensor]] = []
    real = proving.gradients_of

    def watched(*args, **kwargs):
        assert not any(gradient() is not None for gradient in seen), "an earlier example's gradient is still held"
        found = real(*args, **kwargs)
        seen.extend(weakref.ref(gradient) for gradient in found.values())
        return found

    monkeypatch.setattr(proving, "gradients_of", watched)
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
    [entry] = planning._plans[model].values()
    assert (("linear", ("layer.weight", "layer.bias")), Layout.MINOR) in entry.plan.proved
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter))
    torch.testing.assert_close(norms(model, losses, (x, y)), each())


class Gated(nn.Module):
    """The layer's output counts for nothing while the gate is shut, whatever the weights are."""

    def __init__(self):
        super().__init__()
        self.layer, self.out, self.gate = nn.Linear(4, 4), nn.Linear(4, 2), torch.zeros(())

    def forward(self, x):
        return self.out(x.mean(1)) + self.gate * self.layer(x.transpose(0, 1)).mean((0, 2))[:, None]


def test_what_no_weights_reveal_is_good_for_zeros_only_until_it_shows(caplog):
    model, x = Gated(), torch.randn(5, 6, 4)
    silent = (("linear", ("layer.weight", "layer.bias")), Layout.SECOND)

    def ask():
        found = norms_and_sum(model, loss_of, x, clip)
        assert error(found, each_row(model, loss_of, x)) < 1e-5

    ask()
    [entry] = planning._plans[model].values()
    assert not caplog.records
    assert entry.plan.silent == {silent}
    model.gate.fill_(1.0)
    ask()
    assert not entry.plan.silent
    assert silent in entry.plan.proved


class Beyond(nn.Module):
    """One layer counts only for rows beyond 1, and made-up rows lie between 0 and 1."""

    def __init__(self):
        super().__init__()
        self.layer, self.out = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.out(x).mean(1) + ((x - 1).relu() * self.layer(x)).mean((1, 2))[:, None]


def test_a_silent_layer_is_not_trusted_with_gradients(monkeypatch):
    """No made-up row shows that its rule is wrong; the first gradient that is not zero sends it the general way."""

    def wrong(use, input, weight, bias=None):
        return (forgets_the_bias if len(weight) == 4 else linear)(use, input, weight, bias)

    monkeypatch.setitem(RULES, functional.linear, Rule(wrong))
    model = Beyond()
    for _ in range(20):
        for x in (torch.rand(5, 6, 4), torch.randn(5, 6, 4)):
            found = norms_and_sum(model, loss_of, x, clip)
            assert error(found, each_row(model, loss_of, x)) < 1e-5
    [entry] = planning._plans[model].values()
    assert entry.plan.silent


def test_a_silent_layer_is_looked_at_again_when_it_may_show_more():
    model, x = Beyond(), torch.randn(5, 6, 4)
    for _ in range(3):
        norms_and_sum(model, loss_of, x, clip)
    [entry] = planning._plans[model].values()
    assert entry.plan.silent
    remember(model, 2 * torch.randn(5, 6, 4))
    for _ in range(20):
        norms_and_sum(model, loss_of, x, clip)
    assert not entry.plan.silent


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


def test_a_layer_that_led_nowhere_is_not_trusted_when_it_leads_somewhere():
    class Spare(nn.Module):
        def __init__(self):
            super().__init__()
            self.spare, self.out, self.used = nn.Linear(4, 2), nn.Linear(4, 2), False

        def forward(self, x):
            spare = self.spare(x)
            return self.out(x) + spare if self.used else self.out(x)

    model, x = Spare(), torch.randn(5, 4)
    for used in (False, True):
        model.used = used
        assert error(norms_and_sum(model, loss_of, x, clip), each_row(model, loss_of, x)) < 1e-5
    [entry] = planning._plans[model].values()
    assert not entry.plan.idle


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


def test_made_up_rows_are_tried_until_the_model_runs(caplog):
    class Picky(nn.Module):
        """Takes no length of 0."""

        def __init__(self):
            super().__init__()
            self.out = nn.Linear(4, 2)

        def forward(self, x, lengths):
            assert not isinstance(lengths, torch.Tensor) or lengths.dtype == torch.int64
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            out, _ = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, total_length=x.shape[1])
            return self.out(out.mean(1))

    model, batch = Picky(), (torch.randn(5, 6, 4), torch.tensor([3, 1, 6, 2, 2]))
    assert error(norms_and_sum(model, loss_of, batch, clip), each_row(model, loss_of, batch)) < 1e-5
    assert not caplog.records


class ChangesItsWays(nn.Module):
    """Makes something from parameters and, when it is told to, changes that in place."""

    def __init__(self, made, changed):
        super().__init__()
        self.table, self.scale = nn.Embedding(6, 4), nn.Parameter(torch.tensor([0.5, 1.0, 2.0, 3.0]))
        self.made, self.changed, self.now = made, changed, False

    def forward(self, tokens):
        rows = self.made(self)
        if self.now:
            self.changed(self, rows)
        return self.table(tokens) * rows + self.scale


@pytest.mark.parametrize("made", [lambda m: m.table(torch.arange(5)), lambda m: m.table.weight[:5] * 2])
@pytest.mark.parametrize(
    "changed",
    [lambda m, rows: rows.mul_(3), lambda m, rows: rows.mul_(m.scale), lambda m, rows: rows[0].add_(m.scale)],
    ids=["by a number", "by a parameter", "through a view"],
)
def test_what_is_made_from_parameters_and_changed_later_is_not_taken_as_it_was(made, changed):
    model, tokens = ChangesItsWays(made, changed), torch.randint(0, 6, (4, 5))
    assert_exact(model, tokens)
    model.now = True
    assert error(norms_and_sum(model, loss_of, tokens, clip), each_row(model, loss_of, tokens)) < 1e-5


def test_rows_looked_up_without_gradients_leave_no_trace():
    """Their memory may be that of another tensor soon."""

    class Peeks(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.scale = nn.Embedding(6, 4), nn.Parameter(torch.rand(5, 4))

        def forward(self, tokens):
            with torch.no_grad():
                self.table(torch.arange(5))
            return self.table(tokens) * (2 * self.scale)

    assert_exact(Peeks(), torch.randint(0, 6, (4, 5)))
