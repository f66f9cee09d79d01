"""Stacked layers: what a layer of one model does, done by the same layer of several models on their own rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, Unpack

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from reticent.errors import ModelError
from reticent.gradients.following import ABOUT_SHAPES, Args, Function, Kwargs, NotFollowed, Place, Whose
from reticent.gradients.following.places import Answer
from reticent.gradients.forms import Dense, Form, Lookup, Outer
from reticent.gradients.rules.normalisation import Affine, parts
from reticent.gradients.tape import tapped
from reticent.gradients.task import trainable

Forms: TypeAlias = Iterator[tuple[Tensor | None, Form]]
_ONE_BY_ONE = "train such models one by one, or in processes"


class Stacked(TorchFunctionMode):
    """Answers the layers of one model, the first, with those of all models; rows come model after model."""

    def __init__(self, model: nn.Module, stacked: Mapping[str, Tensor], rows: int):
        super().__init__()
        self.whose = Whose(rows, {}, curious=True)
        self.names = {id(parameter): name for name, parameter in trainable(model).items()}
        self.models = len(next(iter(stacked.values())))
        self._stacked = stacked

    def __torch_function__(
        self, func: Function, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        kwargs = kwargs or {}
        if func in ABOUT_SHAPES:
            return func(*args, **kwargs)
        given = [value for value in (*args, *kwargs.values()) if id(value) in self.names]
        try:
            if given and func in _LAYERS:
                self._refuse_misplaced(self.whose.after(func, args, kwargs))
                output = _LAYERS[func](self, *args, **kwargs)
                self.whose.mark(output, Place(0))
                return output
            result = func(*args, **kwargs)
            self.whose.mark(result, self.whose.after(func, args, kwargs, result), args[0] if args else None)
        except NotFollowed as lost:
            raise ModelError(f"{getattr(func, '__name__', func)} cannot be stacked: {lost}; {_ONE_BY_ONE}") from None
        if given and isinstance(result, Tensor) and result.requires_grad:
            raise ModelError(f"{func.__name__} of {self.names[id(given[0])]!r} cannot be stacked; {_ONE_BY_ONE}")
        return result

    def losses(self, found: Tensor) -> Tensor:
        """Give losses back if each is of its own row."""
        try:
            self._refuse_misplaced(self.whose.of(found))
        except NotFollowed as lost:
            raise ModelError(f"this loss cannot be stacked: {lost}; {_ONE_BY_ONE}") from None
        return found

    def _refuse_misplaced(self, where: Answer) -> None:
        if not isinstance(where, Place) or not where.same(Place(0)):
            raise NotFollowed("the rows of all models are not on the first axis")

    def all_of(self, value: Tensor) -> Tensor:
        """Give all models' values of a parameter; a frozen one is the first model's for all."""
        name = self.names.get(id(value))
        return value.expand(self.models, *value.shape) if name is None else self._stacked[name]

    def by_model(self, rows: Tensor) -> Tensor:
        """View rows with the models on the first axis."""
        return rows.reshape(self.models, -1, *rows.shape[1:])

    def note(self, output: Tensor, forms: Callable[[Tensor], Forms]) -> Tensor:  # noqa: ARG002 - a place to fill
        """Have gradients kept, where they are wanted."""
        return output


class StackedBooks(Stacked):
    """The same with every example's gradient kept."""

    def __init__(self, model: nn.Module, stacked: Mapping[str, Tensor], rows: int):
        super().__init__(model, stacked, rows)
        self.anchor = torch.zeros((), requires_grad=True)
        self.forms: dict[str, Form] = {}

    def note(self, output: Tensor, forms: Callable[[Tensor], Forms]) -> Tensor:
        def keep(gradient: Tensor) -> None:
            for value, form in forms(gradient):
                name = self.names.get(id(value))
                if name is not None:
                    self.forms[name] = self.forms[name].joined([form]) if name in self.forms else form

        return tapped(output, self.anchor, keep)

    def norms(self) -> Tensor:
        """Measure everything kept."""
        squares = []
        for name, form in self.forms.items():
            found, self.forms[name] = form.measure()
            squares.append(found)
        return torch.stack(squares).sum(0).sqrt()


def _linear(mode: Stacked, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    rows = mode.by_model(input).flatten(1, -2)
    output = torch.bmm(rows, mode.all_of(weight).mT)
    if bias is not None:
        output = output + mode.all_of(bias)[:, None]

    def forms(gradient: Tensor) -> Forms:
        outgoing = gradient.reshape(len(input), -1, len(weight))
        yield weight, Outer(outgoing, input.detach().reshape(len(input), -1, input.shape[-1]))
        if bias is not None:
            yield bias, Dense(outgoing.sum(1))

    return mode.note(output.view(*input.shape[:-1], len(weight)), forms)


def _embedding(mode: Stacked, input: Tensor, weight: Tensor, padding_idx: int | None = None, **_: object) -> Tensor:
    tables = mode.all_of(weight).flatten(0, 1)
    first = len(weight) * torch.arange(mode.models, device=input.device)
    own = mode.by_model(input) + first.view(-1, *(1,) * input.ndim)
    output = functional.embedding(own, tables).flatten(0, 1)
    padding = None if padding_idx is None else input == padding_idx % len(weight)
    if padding is not None:
        output = torch.where(padding[..., None], output.detach(), output)

    def forms(gradient: Tensor) -> Forms:
        rows = gradient if padding is None else gradient.masked_fill(padding[..., None], 0)
        index = input.reshape(len(input), -1)
        yield weight, Lookup(index, rows.reshape(*index.shape, -1), len(weight))

    return mode.note(output, forms)


def _scaled(mode: Stacked, normal: Tensor, weight: Tensor | None, bias: Tensor | None, axes: Sequence[int]) -> Tensor:
    """Scale and shift a normalised tensor, in which the parameters have these axes."""
    others = [axis for axis in range(1, normal.ndim) if axis not in axes]
    output = mode.by_model(normal)
    shape = [mode.models, 1] + [normal.shape[axis] if axis in axes else 1 for axis in range(1, normal.ndim)]
    if weight is not None:
        output = output * mode.all_of(weight).view(shape)
    if bias is not None:
        output = output + mode.all_of(bias).view(shape)

    def summed(values: Tensor) -> Form:
        return Dense(values.sum(others) if others else values)

    def forms(gradient: Tensor) -> Forms:
        if weight is not None:
            yield weight, summed(gradient * normal.detach())
        if bias is not None:
            yield bias, summed(gradient)

    return mode.note(output.flatten(0, 1), forms)


def _layer_norm(mode: Stacked, input: Tensor, normalized_shape: Sequence[int], **affine: Unpack[Affine]) -> Tensor:
    weight, bias, eps = parts(affine)
    axes = range(input.ndim - len(normalized_shape), input.ndim)
    return _scaled(mode, functional.layer_norm(input, normalized_shape, eps=eps), weight, bias, axes)


def _group_norm(mode: Stacked, input: Tensor, num_groups: int, **affine: Unpack[Affine]) -> Tensor:
    weight, bias, eps = parts(affine)
    return _scaled(mode, functional.group_norm(input, num_groups, eps=eps), weight, bias, [1])


_LAYERS: dict[Function, Callable[..., Tensor]] = {
    functional.linear: _linear,
    functional.embedding: _embedding,
    functional.layer_norm: _layer_norm,
    functional.group_norm: _group_norm,
}


def add_to_each(form: Form, totals: Tensor, weights: Tensor, good: Tensor) -> None:
    """Add each model's gradients, times their weights, to its own total; only `good` examples take part."""
    models = len(totals)
    if not good.all():
        shares = zip(totals, torch.arange(len(good)).chunk(models), strict=True)
        for total, rows in shares:
            own = rows[good[rows]]
            form.keep(own).add_to(total, weights[own])
    elif isinstance(form, Outer):
        left = (form.left * weights[:, None, None]).reshape(models, -1, form.left.shape[-1])
        totals.baddbmm_(left.mT, form.right.reshape(models, -1, form.right.shape[-1]))
    elif isinstance(form, Lookup):
        first = form.size * torch.arange(models).repeat_interleave(len(weights) // models)
        rows = (form.rows * weights[:, None, None]).flatten(0, 1)
        totals.view(-1, totals.shape[-1]).index_add_(0, (form.index + first[:, None]).flatten(), rows)
    else:
        gradients = form.dense().reshape(models, len(weights) // models, -1)
        totals += torch.bmm(weights.view(models, 1, -1), gradients).view(totals.shape)
