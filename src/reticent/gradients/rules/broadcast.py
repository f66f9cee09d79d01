"""Rules for parameters that are broadcast to the examples: scales, shifts, tokens, slopes, sums of products."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from reticent.gradients.following import Function
from reticent.gradients.forms import Dense, SharedRows
from reticent.gradients.layouts import Layout
from reticent.gradients.registry import rule
from reticent.gradients.tape import LookedUp
from reticent.gradients.uses import Forms, Use


def expanded(use: Use, given: Tensor, like: Tensor) -> Tensor:
    """Give every example its own view of a parameter, so that autograd itself keeps their gradients apart."""
    axis = 1 if use.layout is Layout.SECOND else 0
    shape = [1] * (like.ndim - given.ndim) + list(given.shape)
    rows = use.looked_up(given)
    if len(shape) != like.ndim or (shape[axis] != 1 and (rows is None or shape[axis] != like.shape[axis])):
        raise use.refuse("the parameter is not the same for all examples")
    copies = use.plain(given).expand([size if i == axis else shape[i] for i, size in enumerate(like.shape)])
    return _tapped(use, given, copies) if rows is None else _rows(use, rows, shape, copies)


def _rows(use: Use, rows: LookedUp, shape: list[int], copies: Tensor) -> Tensor:
    """The same for rows of a table that all examples look up alike: it is the table that is asked about."""
    index = rows.which.reshape(shape[:-1])
    if shape[1 if use.layout is Layout.SECOND else 0] != 1:  # a row of indices for each example
        index = use.first(index)
        if not _alike(index):
            raise use.refuse("the parameter is not the same for all examples")
        index = index[0]
    index = index.flatten()
    table, padding = rows.table, None if rows.padding is None else rows.padding % len(rows.table)

    def forms(gradient: Tensor) -> Forms:
        own = use.first(gradient)
        own = own if shape[0] != 1 or own.ndim == gradient.ndim else own.sum(1)
        each = own.reshape(use.n, -1, own.shape[-1])
        if padding is not None:
            each = each.masked_fill((index == padding)[:, None], 0)
        yield table, SharedRows(index, each, len(table))

    return use.tap(copies, (table,), forms, saved=(rows.which,))


def _alike(rows: Tensor) -> bool:
    """Whether all examples look up the same: otherwise the place of an example in its batch would count."""
    return bool((rows == rows[:1]).all())


def _tapped(use: Use, given: Tensor, copies: Tensor) -> Tensor:
    """Tap copies of a parameter, of which each example has its own."""

    def forms(gradient: Tensor) -> Forms:
        own = use.first(gradient)
        if use.layout in (Layout.MAJOR, Layout.MINOR):
            own = own.sum(1)
        rest = [1] * (copies.ndim - given.ndim) + list(given.shape)
        del rest[1 if use.layout is Layout.SECOND else 0]
        yield given, Dense(own.sum_to_size(use.n, *rest).reshape(use.n, *given.shape))

    return use.tap(copies, (given,), forms)


@rule(torch.Tensor.expand)
def expand(use: Use, given: Tensor, *sizes: int) -> Tensor:
    """A token or state that each example gets a copy of."""
    return _tapped(use, given, use.plain(given).expand(*sizes))


@rule(torch.Tensor.expand_as)
def expand_as(use: Use, given: Tensor, other: Tensor) -> Tensor:
    """The same, to the shape of something else."""
    return expanded(use, given, other).expand_as(other)


@rule(torch.Tensor.repeat)
def repeat(use: Use, given: Tensor, *sizes: int | Sequence[int]) -> Tensor:
    """The same, written with `repeat`."""
    times = sizes[0] if isinstance(sizes[0], list | tuple | torch.Size) else sizes
    if any(count != 1 for count in times[1:]):
        raise use.refuse("repeated along more than the first axis")
    return _tapped(use, given, use.plain(given).expand(times[0], *given.shape[given.ndim - len(times) + 1 :]))


@rule(functional.prelu, torch.prelu)
def prelu(use: Use, input: Tensor, weight: Tensor) -> Tensor:
    """A slope for negative inputs, one for all channels or one for each."""

    def forms(gradient: Tensor) -> Forms:
        slopes = use.first(gradient * input.clamp(max=0))
        if weight.numel() == 1:
            yield weight, Dense(slopes.flatten(1).sum(1, keepdim=True))
            return
        channels = slopes.movedim(slopes.ndim - input.ndim + 1, 1)
        yield weight, Dense(channels.flatten(2).sum(2) if channels.ndim > 2 else channels)

    return use.tap(functional.prelu(input, use.plain(weight)), (weight,), forms, saved=(input,))


@rule(torch.einsum)
def einsum(use: Use, equation: str, *operands: Tensor) -> Tensor:
    """A sum of products: the parameters get the examples' letter."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow or "." in equation or use.layout not in (Layout.FIRST, Layout.SECOND):
        raise use.refuse("no rule for an einsum with '...' or without '->'")
    letter = output[0 if use.layout is Layout.FIRST else 1]
    own: list[Tensor] = []
    for i, operand in enumerate(operands):
        if use.wants(operand):
            if letter in terms[i]:
                raise use.refuse("the parameter is not the same for all examples")
            terms[i] = letter + terms[i]
            copies = use.plain(operand).expand(use.n, *operand.shape)
            own.append(use.tap(copies, (operand,), partial(_as_they_come, operand)))
        else:
            own.append(operand)
    return torch.einsum(f"{','.join(terms)}->{output}", *own)


def _as_they_come(given: Tensor, gradient: Tensor) -> Forms:
    yield given, Dense(gradient)


ELEMENTWISE: list[Function] = [
    torch.add, torch.Tensor.add, torch.Tensor.add_, torch.Tensor.__radd__,
    torch.sub, torch.Tensor.sub, torch.Tensor.sub_, torch.Tensor.__rsub__, torch.rsub,
    torch.mul, torch.Tensor.mul, torch.Tensor.mul_, torch.Tensor.__rmul__,
    torch.div, torch.Tensor.div, torch.Tensor.div_, torch.Tensor.__rdiv__,
    torch.pow, torch.Tensor.pow, torch.Tensor.__pow__, torch.Tensor.__rpow__,
    torch.maximum, torch.minimum, torch.where, torch.lerp, torch.addcmul,
]  # fmt: skip


def _elementwise(function: Function) -> None:
    @rule(function)
    def run(use: Use, *args: object, **kwargs: object) -> object:
        like = max((value for value in args if isinstance(value, Tensor) and not use.wants(value)), key=Tensor.dim)
        own = (
            expanded(use, value, like) if isinstance(value, Tensor) and use.wants(value) else value for value in args
        )
        return function(*own, **kwargs)


for _function in ELEMENTWISE:
    _elementwise(_function)
