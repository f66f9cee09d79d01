"""Mixtures of experts: rows are sorted by their expert and put back, and every gradient stays its own example's."""

from __future__ import annotations

import logging

import pytest
import torch
from gradient_oracle import clip, each_row, error, loop, loss_of
from torch import nn

from reticent.gradients import norms_and_sum
from reticent.gradients.following.routing import _ends
from reticent.gradients.grouped import Grouped, GroupedLoss

N, TOKENS, EXPERTS, WIDTH, HIDDEN, CHOSEN = 5, 6, 4, 8, 12, 2


class Mixture(nn.Module):
    """As transformers writes it; `bent` is a place to do something wrong, or something unusual, on the way."""

    def __init__(self, bent=None, *, turned=True, frozen=False):
        super().__init__()
        torch.manual_seed(0)
        self.enter, self.turned, self.bent = (
            nn.Linear(WIDTH, WIDTH),
            turned,
            bent or (lambda _name, value, **_all: value),
        )
        shapes = {"up": (2 * HIDDEN, WIDTH), "down": (WIDTH, HIDDEN)}
        for name, (out, into) in shapes.items():
            shape = (EXPERTS, out, into) if turned else (EXPERTS, into, out)
            setattr(self, name, nn.Parameter(torch.randn(shape) * 0.5, requires_grad=not frozen))

    def room(self, order):
        return torch.empty_like(order)

    def forward(self, x, scores):
        n = len(x)
        tokens = self.enter(x).flatten(0, 1)
        shares, chosen = scores.flatten(0, 1).softmax(-1).topk(CHOSEN, -1)
        return self.routed(tokens, shares, chosen).view(n, x.shape[1], WIDTH) + x

    def routed(self, tokens, shares, chosen):
        experts, order = torch.sort(chosen.reshape(-1))
        rows, weights = tokens[order // CHOSEN], shares.reshape(-1)[order]
        counts = self.bent("counts", torch.histc(experts.float(), bins=EXPERTS, min=0, max=EXPERTS - 1))
        ends = self.bent("ends", torch.cumsum(counts, dim=0, dtype=torch.int32))
        gate, up = self.through(rows, self.up, ends).chunk(2, dim=-1)
        rows = self.bent("rows", self.through(nn.functional.silu(gate) * up, self.down, ends), experts=experts)
        rows = rows * weights.unsqueeze(-1)
        back = self.room(order)
        back[order] = torch.arange(len(order), dtype=back.dtype)
        return self.bent("out", rows[self.bent("back", back)].view(len(tokens), CHOSEN, WIDTH)).sum(1)

    def through(self, rows, matrices, ends):
        matrices = matrices.transpose(-2, -1) if self.turned else matrices
        return nn.functional.grouped_mm(rows.to(matrices.dtype), matrices, offs=ends)


def scores(chosen):
    """Scores by which each token of each example goes to the experts that are named."""
    return nn.functional.one_hot(chosen, EXPERTS).sum(2).float() * 5 + torch.rand(*chosen.shape[:2], EXPERTS)


def rows(chosen):
    return torch.randn(*chosen.shape[:2], WIDTH), scores(chosen)


FIRST_TWO = torch.tensor([0, 1]).expand(N, TOKENS, 2)


def with_one(example, tokens, chosen):
    changed = FIRST_TWO.clone()
    changed[example, tokens] = torch.tensor(chosen)
    return changed


def assert_exact(model, batch):
    """Compare in float32, the only type that torch multiplies so: with single examples and with the same pass."""
    found = norms_and_sum(model, loss_of, batch, clip)
    assert error(found, loop(model, loss_of, batch)) < 1e-5
    assert error(found, each_row(model, loss_of, batch)) < 1e-5


CHOICES = {
    "by chance": torch.stack([torch.randperm(EXPERTS)[:2] for _ in range(N * TOKENS)]).view(N, TOKENS, 2),
    "experts without a token": FIRST_TWO,
    "one token for the last expert": with_one(2, slice(3, 4), [0, 3]),
    "an expert with the tokens of one example only": with_one(1, slice(None), [2, 3]),
    "the first expert has none": FIRST_TWO + 2,
    "a single example": FIRST_TWO[:1],
    "a single token": with_one(0, slice(None), [1, 3])[:, :1],
}


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("choice", CHOICES)
def test_every_example_gets_what_it_would_get_alone(choice, turned, caplog):
    with caplog.at_level(logging.WARNING):
        assert_exact(Mixture(turned=turned), rows(CHOICES[choice]))
    assert not caplog.records


def test_experts_that_are_not_trained_let_gradients_through(caplog):
    assert_exact(Mixture(frozen=True), rows(CHOICES["by chance"]))
    assert not caplog.records


def test_experts_used_twice_are_added_before_they_are_measured(caplog):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Mixture()

        def forward(self, x, scores):
            return self.inner(self.inner(x, scores).tanh(), scores.flip(-1))

    assert_exact(Twice(), rows(CHOICES["by chance"]))
    assert not caplog.records


def test_experts_used_in_another_way_too_are_added_before_they_are_measured():
    class Also(Mixture):
        def forward(self, x, scores):
            return super().forward(x, scores) + torch.einsum("ntd,od->nto", x, self.up.transpose(-2, -1)[0].T[:WIDTH])

    assert_exact(Also(), rows(CHOICES["by chance"]))


def test_rows_of_one_person_are_one_example(caplog):
    x, own = rows(CHOICES["by chance"][:4])
    people = Grouped((x.view(2, 2, TOKENS, WIDTH), own.view(2, 2, TOKENS, EXPERTS)), torch.rand(2, 2))
    model, loss = Mixture(), GroupedLoss(loss_of)
    assert error(norms_and_sum(model, loss, people, clip), each_row(model, loss, people)) < 1e-5
    assert not caplog.records


def test_an_example_without_a_norm_touches_no_other():
    x, own = rows(CHOICES["by chance"])
    x[1, 0, 0] = torch.nan
    model, others = Mixture(), torch.tensor([0, 2, 3, 4])
    norms, sums = norms_and_sum(model, loss_of, (x, own), clip)
    found = norms_and_sum(model, loss_of, (x[others], own[others]), clip)
    assert not norms[1].isfinite()
    assert error((norms[others], sums), found) < 1e-5


def _capacity(name, value, **_all):
    """No expert takes more rows than a share of the batch: whose row is left out depends on the others."""
    return value.clamp(max=CHOSEN * TOKENS) if name == "counts" else value


def _by_rank(name, value, **_all):
    return value * torch.arange(len(value))[:, None] if name == "rows" else value


def _by_count(name, value, **_all):
    return value / value.shape[0] * (1 + value.sum(0)) if name == "rows" else value


def _other_ends(name, value, **_all):
    return (value - torch.tensor([1, 0, 0, 0])).clamp(min=0).int() if name == "ends" else value


def _other_way_back(name, value, **_all):
    return value.flip(0) if name == "back" else value


def _row_of_another(name, value, **_all):
    return value.roll(1, 0) if name == "rows" else value


def _expert_as_number(name, value, experts=None):
    """A clean function of each row, but not one that is known."""
    return value * (1 + experts.unsqueeze(-1)) if name == "rows" else value


@pytest.mark.parametrize(
    "bent", [_capacity, _by_rank, _by_count, _other_ends, _other_way_back, _row_of_another, _expert_as_number]
)
def test_what_is_not_known_goes_the_general_way(bent, caplog):
    model, batch = Mixture(bent), rows(CHOICES["by chance"])
    assert error(norms_and_sum(model, loss_of, batch, clip), loop(model, loss_of, batch)) < 1e-5
    assert "general path" in caplog.text


def test_rows_sorted_downwards_have_no_rule(caplog):
    class Downwards(Mixture):
        def routed(self, tokens, shares, chosen):
            experts, order = torch.sort(chosen.reshape(-1), descending=True)
            counts = torch.histc(experts.float(), bins=EXPERTS, min=0, max=EXPERTS - 1)
            rows = tokens[order // CHOSEN] * shares.reshape(-1)[order].unsqueeze(-1)
            ends = counts.flip(0).cumsum(0, dtype=torch.int32)
            rows = nn.functional.grouped_mm(rows, self.up.flip(0).transpose(-2, -1), offs=ends)
            return rows[order.argsort()][:, :WIDTH].reshape(len(tokens), CHOSEN, WIDTH).sum(1)

    assert_exact(Downwards(), rows(CHOICES["by chance"]))
    assert "general path" in caplog.text


def test_a_way_back_of_small_numbers_has_no_rule(caplog):
    """From 128 rows on it would lead to the rows of others."""

    class Small(Mixture):
        def room(self, order):
            return torch.empty_like(order, dtype=torch.int32)

    assert_exact(Small(), rows(CHOICES["by chance"]))
    assert "general path" in caplog.text


def test_every_row_must_have_an_expert():
    """Rows beyond the last expert get no answer at all."""
    experts = torch.tensor([0, 0, 2])
    assert _ends(experts, torch.tensor([2, 2, 3], dtype=torch.int32))
    assert not _ends(experts, torch.tensor([2, 2], dtype=torch.int32))
    assert not _ends(experts, torch.tensor([1, 2, 3], dtype=torch.int32))
    assert not _ends(experts - 1, torch.tensor([0, 3], dtype=torch.int32))
