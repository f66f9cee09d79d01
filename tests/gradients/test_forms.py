"""Every form agrees with its own gradients written out."""

from __future__ import annotations

import pytest
import torch

from reticent.gradients.forms import Bag, Dense, Lookup, Outer, Patches, StackedForm
from reticent.gradients.forms.dense import squares

N = 5


def make(kind):
    torch.manual_seed(1)
    real = torch.float64
    match kind:
        case "dense":
            return Dense(torch.randn(N, 3, 4, dtype=real))
        case "dense, turned":
            return Dense(torch.randn(N, 4, 3, dtype=real), lambda gradients: gradients.mT)
        case "outer, one position":
            return Outer(torch.randn(N, 1, 3, dtype=real), torch.randn(N, 1, 4, dtype=real))
        case "outer, Gram":
            return Outer(torch.randn(N, 2, 30, dtype=real), torch.randn(N, 2, 40, dtype=real))
        case "outer, written out":
            return Outer(torch.randn(N, 9, 3, dtype=real), torch.randn(N, 9, 4, dtype=real))
        case "lookup":
            return Lookup(torch.randint(6, (N, 7)), torch.randn(N, 7, 3, dtype=real), 9)
        case "lookup, one word":
            return Lookup(torch.zeros(N, 7, dtype=torch.int64), torch.randn(N, 7, 3, dtype=real), 9)
        case "lookup, one position":
            return Lookup(torch.randint(9, (N, 1)), torch.randn(N, 1, 3, dtype=real), 9)
        case "lookup, short table":
            return Lookup(torch.randint(6, (N, 7), dtype=torch.int32), torch.randn(N, 7, 3, dtype=real), 6)
        case "bag":
            index = torch.tensor([[0, 0, 1, 3], [1, 2, 4, 5], [0, 0, 0, 0], [0, 0, 0, 5], [2, 3, 4, 5]])
            shares = torch.where(index == 0, 0, torch.rand(N, 4, dtype=real))
            return Bag(index, shares, torch.randn(N, 3, dtype=real), 6)
        case "bag, words repeated":
            return Bag(torch.randint(6, (N, 7)), torch.randn(N, 7, dtype=real), torch.randn(N, 3, dtype=real), 6)
        case "bag, words repeated around one without a share":
            index, shares = torch.tensor([[2, 2, 2, 3]] * N), torch.tensor([[1.0, 0.0, 1.0, 1.0]] * N, dtype=real)
            return Bag(index, shares, torch.randn(N, 3, dtype=real), 6)
        case "patches":
            image, outgoing = torch.randn(N, 2, 5, 4, 4, dtype=real), torch.randn(N, 2, 2, 4, 6, dtype=real)
            return Patches(image, outgoing, (3, 2), (3, 1), (1, 1), 2, [(1, 0), (0, 1)])
        case "stacked":
            blocks = [Outer(torch.randn(N, 2, p, dtype=real), torch.randn(N, 2, 4, dtype=real)) for p in (3, 1)]
            return StackedForm(tuple(blocks), (3, 1))


KINDS = [
    "dense", "dense, turned", "outer, one position", "outer, Gram", "outer, written out",
    "lookup", "lookup, one word", "lookup, one position", "lookup, short table",
    "bag", "bag, words repeated", "bag, words repeated around one without a share",
    "patches", "stacked",
]  # fmt: skip


def summed(form, weights):
    total = torch.ones(form.dense().shape[1:], dtype=torch.float64)
    form.add_to(total, weights)
    return total - 1


@pytest.mark.parametrize("kind", KINDS)
def test_norms_and_sums_are_those_of_the_gradients_written_out(kind):
    form, weights = make(kind), torch.rand(N, dtype=torch.float64)
    gradients = form.dense()
    measured, kept = form.measure()
    torch.testing.assert_close(measured, squares(gradients))
    for same in (form, kept):
        torch.testing.assert_close(same.dense(), gradients)
        torch.testing.assert_close(summed(same, weights), torch.tensordot(weights, gradients, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_examples_left_out_have_no_part(kind):
    form, good = make(kind), torch.tensor([True, False, True, True, False])
    for same in (form, form.measure()[1]):
        torch.testing.assert_close(same.keep(good).dense(), form.dense()[good])


@pytest.mark.parametrize("kind", KINDS)
def test_uses_are_added_before_the_norm_is_taken(kind):
    form = make(kind)
    expected = 3 * form.dense()
    for others in ([form, form], [Dense(form.dense()), form]):
        joined = form.joined(others)
        torch.testing.assert_close(joined.dense(), expected)
        torch.testing.assert_close(joined.measure()[0], squares(expected))


@pytest.mark.parametrize("small", [0.0, 1e-6, 1e-4, 1e-2])
def test_a_norm_is_not_lost_where_positions_cancel(small):
    direction, features = torch.randn(N, 1, 40), torch.randn(N, 1, 50)
    left = torch.cat([direction, -direction + small * torch.randn(N, 1, 40)], 1)
    form = Outer(left, features.repeat(1, 2, 1))
    true = squares(Outer(form.left.double(), form.right.double()).dense()).sqrt()
    assert ((form.measure()[0].sqrt() - true).abs() <= 1e-5 * true + 1e-5).all()


def test_low_precision_is_measured_in_float32():
    gradients = torch.full((2, 4), 300.0, dtype=torch.float16)
    assert squares(gradients).tolist() == [360000.0, 360000.0]
