"""Program: the loss that a loop computes, as a list of operations, and the same for each example by itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from reticent.errors import ModelError
from reticent.gradients.batches import size
from reticent.inside import Batch
from reticent.integrations.opacus.listening import Note, Value, called_model, part_of_batch

Kind: TypeAlias = Literal["mean", "sum"]

_SHAPES = {"view", "reshape", "expand", "unflatten", "repeat", "tile", "broadcast_to", "new_zeros", "new_ones"}
"""Functions that are told a shape: where it begins with the number of rows, it means the rows there are."""

_BY_LENGTHS = {"ctc_loss"}
"""Losses whose mean divides by something else than their number."""

REMEDY = (
    "Let the loop compute the loss by one of torch's losses, or by .mean() over one number for each example, from "
    "model(x) and the batch alone; or say which it is by make_private(..., criterion=...)"
)


@dataclass(frozen=True)
class Ref:
    """The result of an earlier operation."""

    place: int


class _Rows:
    """Stands for the number of rows."""


ROWS = _Rows()


@dataclass(frozen=True, eq=False)
class Constant:
    """A tensor that is no part of the batch: the same in every round."""

    value: Tensor

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Constant) and self.value.dtype == other.value.dtype
        return same and torch.equal(self.value, other.value)  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Operation:
    """A function with its arguments, among them references to earlier results."""

    function: Callable[..., Value]
    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]
    followed: bool
    scalar: bool = field(compare=False)
    """Whether the result was one number."""

    def given(self, found: list[Value], rows: int, *before: Value) -> Value:
        """What it gives from earlier results, and what comes before them."""
        args = (_filled(part, found, rows) for part in self.args)
        kwargs = {name: _filled(part, found, rows) for name, part in self.kwargs.items()}
        with nullcontext() if self.followed else torch.no_grad():
            return self.function(*before, *args, **kwargs)


def _filled(value: Value, found: list[Value], rows: int) -> Value:
    if isinstance(value, Ref):
        return found[value.place]
    if isinstance(value, Constant):
        return value.value
    if value is ROWS:
        return rows
    if isinstance(value, Mapping):
        return {key: _filled(part, found, rows) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_filled(part, found, rows) for part in value)
    return value


@dataclass(frozen=True)
class Program:
    """The operations from a batch to a scalar loss, in order; equal programs ask for the same."""

    operations: tuple[Operation, ...]

    @classmethod
    def of(cls, loss: Note) -> Program:
        """Write down how a loss was made; refuses what is not made of the batch, the model and constants."""
        if loss.shape != ():
            raise ModelError(f"backward() was called on a tensor of shape {loss.shape}: a loss is one number")
        writer = _Writer()
        writer.ref(loss)
        found = cls(tuple(writer.operations))
        found._refuse_numbers_of_the_batch()
        if not any(one.function is called_model for one in found.operations):
            raise ModelError(
                "the loss does not come from the model that make_private returned, called with this batch: call that "
                f"one, and not its parts or the model as it was before. {REMEDY}"
            )
        return found

    @property
    def kind(self) -> Kind:
        """Whether the loss is a mean over the examples or a sum; refuses what is neither."""
        return self._kind(len(self.operations) - 1)

    def for_each(self, model: nn.Module, batch: Batch) -> Tensor:
        """The loss of each example."""
        rows = size(batch)
        found: list[Value] = []
        for operation in self.operations:
            if operation.function is part_of_batch:
                found.append(part_of_batch(batch, *operation.args))
            elif operation.function is called_model:
                found.append(operation.given(found, rows, model))
            else:
                found.append(None if operation.scalar else operation.given(found, rows))
        return self._each(len(self.operations) - 1, found, rows)

    def _refuse_numbers_of_the_batch(self) -> None:
        """A number made of all examples may only be added up or scaled on its way to the loss."""
        for one in self.operations:
            found = [part for part in _refs((one.args, tuple(one.kwargs.values()))) if self._scalar(part)]
            apart = all(part in one.args for part in found) and one.scalar and _name(one.function) in _LINEAR
            if found and not apart:
                raise ModelError(
                    f"one number of the whole batch goes into {_name(one.function)}, and mixes the examples. {REMEDY}"
                )

    # -- one number for the batch, taken apart -------------------------------------------------------------------

    def _kind(self, place: int) -> Kind:
        operation = self.operations[place]
        name = _name(operation.function)
        inner = [part.place for part in operation.args if isinstance(part, Ref) and self._scalar(part)]
        if name in _LINEAR and inner:
            if name in ("mul", "div", "__rmul__") and len(inner) > 1:
                raise ModelError(f"the loss multiplies or divides by a loss of the batch. {REMEDY}")
            kinds = {self._kind(one) for one in inner}
            if len(kinds) == 1 and (name in _CASTS or _plain_rest(operation.args)):
                return kinds.pop()
            raise ModelError(f"the loss adds a mean to a sum, or something that is no part of the batch. {REMEDY}")
        if name in ("mean", "sum") and len(operation.args) == 1 and not operation.kwargs and not inner:
            return "mean" if name == "mean" else "sum"
        reduced = _reduction(operation)
        if reduced is not None:
            return "sum" if reduced == "sum" else "mean"
        raise ModelError(f"the loss ends with {name}, in which the examples may be mixed. {REMEDY}")

    def _scalar(self, ref: Ref) -> bool:
        return self.operations[ref.place].scalar

    def _each(self, place: int, found: list[Value], rows: int) -> Tensor:
        operation = self.operations[place]
        name = _name(operation.function)
        if any(isinstance(part, Ref) and self._scalar(part) for part in operation.args):
            args = [
                self._each(part.place, found, rows) if isinstance(part, Ref) and self._scalar(part) else part
                for part in operation.args
            ]
            kwargs = {key: _filled(part, found, rows) for key, part in operation.kwargs.items()}
            return operation.function(*(_filled(part, found, rows) for part in args), **kwargs)  # type: ignore[no-any-return]
        if name in ("mean", "sum") and _reduction(operation) is None:
            (values,) = (_filled(part, found, rows) for part in operation.args)
            return values.reshape(rows, -1).mean(1) if name == "mean" else values.reshape(rows, -1).sum(1)  # type: ignore[no-any-return]
        return _unreduced(operation, found, rows)


_CASTS = {"to", "float", "double", "cpu", "contiguous"}
_LINEAR = {"mul", "div", "neg", "add", "sub", "__rsub__", "__radd__", "__rmul__", *_CASTS}


def _name(function: Callable[..., Value]) -> str:
    return str(getattr(function, "__name__", function))


def _refs(value: Value) -> Iterator[Ref]:
    """Every earlier result among arguments, in lists and dicts too."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, Mapping | tuple | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _refs(part)


def _plain_rest(args: tuple[Value, ...]) -> bool:
    return all(isinstance(part, Ref | int | float) for part in args)


def _reduction(operation: Operation) -> str | None:
    """The reduction of one of torch's own losses; None for any other function."""
    function = operation.function
    if getattr(functional, _name(function), None) is not function or _name(function) in _BY_LENGTHS:
        return None
    takes = inspect.signature(function)
    if "reduction" not in takes.parameters:
        return None
    bound = takes.bind(*operation.args, **operation.kwargs)
    if bound.arguments.get("size_average") is not None or bound.arguments.get("reduce") is not None:
        return None
    said = bound.arguments.get("reduction", takes.parameters["reduction"].default)
    return said if said in ("mean", "sum", "batchmean") else None


def _unreduced(operation: Operation, found: list[Value], rows: int) -> Tensor:
    """A loss of torch for each example: several numbers of one are averaged, or added up where all are."""
    said, takes = _reduction(operation), inspect.signature(operation.function)
    bound = takes.bind(
        *(_filled(part, found, rows) for part in operation.args),
        **{key: _filled(part, found, rows) for key, part in operation.kwargs.items()},
    )
    bound.arguments["reduction"] = "none"
    values = operation.function(*bound.args, **bound.kwargs).reshape(rows, -1)
    if said != "mean":
        return values.sum(1)  # type: ignore[no-any-return]
    bound.apply_defaults()
    target, ignored = bound.arguments.get("target"), bound.arguments.get("ignore_index")
    if ignored is None or not isinstance(target, Tensor) or target.is_floating_point():
        return values.mean(1)  # type: ignore[no-any-return]
    counted = (target.reshape(rows, -1) != ignored).sum(1).clamp(min=1)
    return values.sum(1) / counted  # type: ignore[no-any-return]


class _Writer:
    """Puts notes into a list, each once."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._places: dict[int, Ref] = {}

    def ref(self, note: Note) -> Ref:
        if id(note) not in self._places:
            if note.flaw:
                raise ModelError(f"a tensor that the loss is made of {note.flaw} ({_name(note.function)}). {REMEDY}")
            _refuse_some_rows(note)
            args = tuple(self._argument(part, note) for part in note.args)
            args = self._by_rows(args, note)
            kwargs = {name: self._argument(part, note) for name, part in note.kwargs.items()}
            self.operations.append(Operation(note.function, args, kwargs, note.followed, note.shape == ()))
            self._places[id(note)] = Ref(len(self.operations) - 1)
        return self._places[id(note)]

    def _argument(self, value: Value, note: Note) -> Value:
        if isinstance(value, Note):
            if value.turn is not note.turn:
                raise ModelError("the loss is made of two batches: each batch has a loss and a step of its own")
            return self.ref(value)
        if isinstance(value, Tensor):
            if value.requires_grad:
                raise ModelError(
                    f"the loss uses a parameter beside the model ({_name(note.function)}): for a penalty on weights "
                    f"use the optimizer's weight_decay. {REMEDY}"
                )
            return Constant(value.detach().clone())
        if isinstance(value, Mapping):
            return {key: self._argument(part, note) for key, part in value.items()}
        if isinstance(value, tuple | list) and not isinstance(value, torch.Size):
            return type(value)(self._argument(part, note) for part in value)
        return value

    def _by_rows(self, args: tuple[Value, ...], note: Note) -> tuple[Value, ...]:
        if _name(note.function) not in _SHAPES or len(args) < 2:
            return args
        first, *rest = args[1:]
        if isinstance(first, tuple | list):
            return args[0], _rows_first(tuple(first), note.turn.rows), *rest
        return args[0], *_rows_first((first, *rest), note.turn.rows)


def _rows_first(shape: tuple[Value, ...], rows: int) -> tuple[Value, ...]:
    return (ROWS, *shape[1:]) if shape and shape[0] == rows and type(shape[0]) is int else shape


def _refuse_some_rows(note: Note) -> None:
    """Refuse rows that are picked by their place: for each example by itself, all of them would take part."""
    if _name(note.function) != "__getitem__" or not isinstance(note.args[0], Note):
        return
    source, index = note.args[0], note.args[1]
    first = index[0] if isinstance(index, tuple) and index else index
    picks = isinstance(first, int) and not isinstance(first, bool)
    picks = picks or (isinstance(first, slice) and first not in (slice(None), slice(0, None)))
    if picks and source.function in (part_of_batch, called_model):  # of these the first axis is the example
        raise ModelError(
            f"the loss is made of some rows of the batch, by their place ({first}): who takes part is the draw's to "
            f"decide. Use all rows; for smaller batches give the loader a smaller batch_size. {REMEDY}"
        )
