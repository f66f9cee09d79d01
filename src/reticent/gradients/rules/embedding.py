"""Rules for tables: embeddings and bags of them."""

# ruff: noqa: ARG001 - a rule takes the arguments of the function it stands for

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from reticent.gradients.forms import Bag, Form, Lookup
from reticent.gradients.registry import rule
from reticent.gradients.uses import Forms, Use


@rule(functional.embedding)
def embedding(
    use: Use,
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Each position's gradient goes to the row it looked up, except to the padding row."""
    if max_norm is not None or scale_grad_by_freq:
        raise use.refuse("max_norm and scale_grad_by_freq have no exact rule")

    def forms(gradient: Tensor) -> Forms:
        yield weight, _lookup(use, input, use.positions(gradient), weight, padding_idx)

    output = functional.embedding(input, use.plain(weight), padding_idx)
    return use.tap(output, (weight,), forms, saved=(input,))


@rule(Tensor.__getitem__)
def rows_by_index(use: Use, table: Tensor, index: object) -> Tensor:
    """The same, written with brackets."""
    if not isinstance(index, Tensor) or table.ndim != 2:
        raise use.refuse("only whole rows of a table, picked by one index, have a rule")

    def forms(gradient: Tensor) -> Forms:
        places = use.first(index).reshape(use.n, -1) % len(table)  # -1 is the last row
        yield table, Lookup(places, use.positions(gradient), len(table))

    return use.tap(use.plain(table)[index], (table,), forms, saved=(index,))


@rule(torch.index_select, Tensor.index_select)
def rows_by_name(use: Use, table: Tensor, dim: int, index: Tensor) -> Tensor:
    """The same, written out."""
    if dim != 0:
        raise use.refuse("only whole rows of a table, picked by one index, have a rule")
    return rows_by_index(use, table, index)


@rule(functional.embedding_bag)
def embedding_bag(
    use: Use,
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """A bag of fixed length for each example: all its positions share the bag's gradient."""
    if offsets is not None and input.ndim == 1:  # they are known to lie equally far apart
        bags = len(offsets) - include_last_offset
        input = input.view(bags, -1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.view(bags, -1)
        offsets = None
    if max_norm is not None or scale_grad_by_freq or offsets is not None or mode == "max" or input.ndim != 2:
        raise use.refuse("only bags of one length, added or averaged, have a rule")
    if per_sample_weights is not None and per_sample_weights.requires_grad:
        raise use.refuse("trained per_sample_weights have no rule")

    padding = None if padding_idx is None else padding_idx % len(weight)

    def forms(gradient: Tensor) -> Forms:
        shares = _shares(input, gradient, mode, per_sample_weights, padding)
        yield weight, _bag(use, input, gradient, shares, weight)

    output = functional.embedding_bag(
        input, use.plain(weight), mode=mode, per_sample_weights=per_sample_weights, padding_idx=padding_idx
    )
    return use.tap(output, (weight,), forms, saved=(input,))


def _shares(
    input: Tensor, gradient: Tensor, mode: str, per_sample_weights: Tensor | None, padding_idx: int | None
) -> Tensor:
    """How much of a bag's gradient each of its positions gets."""
    shares = gradient.new_ones(input.shape) if per_sample_weights is None else per_sample_weights.detach()
    if padding_idx is not None:
        shares = shares.masked_fill(input == padding_idx, 0)
    return shares / (shares != 0).sum(1, keepdim=True).clamp(min=1) if mode == "mean" else shares


def _bag(use: Use, index: Tensor, gradient: Tensor, shares: Tensor, table: Tensor) -> Form:
    one, rows = use.first(index), use.first(gradient)
    if one.ndim == 2:
        return Bag(one, use.first(shares), rows, len(table))
    each = shares[..., None] * gradient[:, None, :]  # several bags of one example may hold the same row
    return Lookup(one.reshape(use.n, -1).long(), use.positions(each), len(table))


def _lookup(use: Use, index: Tensor, rows: Tensor, table: Tensor, padding_idx: int | None) -> Lookup:
    index = use.first(index).reshape(use.n, -1)
    if padding_idx is not None:
        padding = padding_idx % len(table)
        rows = rows.masked_fill((index == padding)[..., None], 0)
    return Lookup(index, rows, len(table))
