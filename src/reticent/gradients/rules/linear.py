"""Rules for matrices: linear layers and matrix products."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from reticent.gradients.forms import Dense, Outer
from reticent.gradients.layouts import Layout
from reticent.gradients.registry import rule
from reticent.gradients.rules.broadcast import expanded
from reticent.gradients.uses import Forms, Use


@rule(functional.linear)
def linear(use: Use, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y = x W' + b: the gradient of W is a sum of outer products over positions, that of b a sum over positions."""

    def forms(gradient: Tensor) -> Forms:
        outgoing = use.positions(gradient)
        if use.wants(weight):
            yield weight, Outer(outgoing, use.positions(input))
        if use.wants(bias):
            yield bias, Dense(outgoing.sum(1) if outgoing.shape[1] > 1 else outgoing[:, 0])

    output = functional.linear(input, use.plain(weight), use.plain(bias))
    return use.tap(output, (weight, bias), forms, saved=(input,))


@rule(torch.addmm, torch.Tensor.addmm)
def addmm(use: Use, bias: Tensor, left: Tensor, right: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """y = x W + b, as some write a linear layer."""
    if use.wants(left) or beta != 1 or alpha != 1 or bias.ndim != 1:
        raise use.refuse("no rule for addmm but as examples times parameters plus a vector")

    def forms(gradient: Tensor) -> Forms:
        outgoing = use.positions(gradient)
        if use.wants(right):
            yield right, Outer(use.positions(left), outgoing)
        if use.wants(bias):
            yield bias, Dense(outgoing.sum(1))

    return use.tap(torch.addmm(use.plain(bias), left, use.plain(right)), (right, bias), forms, saved=(left,))


@rule(torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.mm, torch.Tensor.mm, torch.mv, torch.Tensor.mv)
def matmul(use: Use, left: Tensor, right: Tensor) -> Tensor:
    """A product with a matrix of parameters on one side; a stack of matrices is written out for each example."""
    if use.wants(left) and use.wants(right):
        raise use.refuse("both sides of the product are parameters")
    given, other = (right, left) if use.wants(right) else (left, right)
    if given.ndim > 2:
        return torch.matmul(*(expanded(use, side, other) if side is given else side for side in (left, right)))
    if given is right and given.ndim == 1:
        return (left * expanded(use, given, left)).sum(-1)
    examples_among_columns = given is left and other.ndim == 3 and use.layout is Layout.SECOND
    if given.ndim != 2 or other.ndim < 2 or examples_among_columns:
        raise use.refuse("no rule for a product of these shapes")

    def forms(gradient: Tensor) -> Forms:
        if given is right:
            yield given, Outer(use.positions(other), use.positions(gradient))
        elif other.ndim == 2:
            yield given, Outer(use.positions(gradient), use.positions(other))
        else:
            yield given, Outer(use.positions(gradient.mT), use.positions(other.mT))

    return use.tap(torch.matmul(use.plain(left), use.plain(right)), (given,), forms, saved=(other,))
