"""Listening: what a loop makes of a batch is written down, operation by operation, until it calls `loss.backward()`.

Nothing is differentiated here: the private step repeats what was written down inside the vault, for each example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor

from reticent.errors import ModelError

Value: TypeAlias = Any
"""Whatever a loop calculates with: tensors, containers of them, numbers, models' answers."""

Hear = Callable[["Note"], None]


class Turn:
    """One batch in the hands of a loop."""

    def __init__(self, rows: int, hear: Hear):
        self.rows, self.hear = rows, hear
        self.looked = False
        """Whether a value was read before a loss was heard: then it may be part of the loss as a number."""
        self.counts: set[int] = set()
        """What was told of the number of rows, which is private too."""


@dataclass(frozen=True, eq=False)
class Note:
    """One operation: a function and its arguments, among them the notes of what they were made by."""

    function: Callable[..., Value]
    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]
    turn: Turn
    shape: tuple[int, ...]
    followed: bool = True
    """Whether gradients were to be taken through it."""
    flaw: str = ""
    """Why a loss cannot be made of it."""


def part_of_batch(batch: Value, *path: object) -> Value:
    """The part of a batch at a path: what every list of operations begins with."""
    for key in path:
        batch = batch[key]
    return batch


def picked(several: Value, *path: Value) -> Value:
    """One of several results."""
    return part_of_batch(several, *path)


def called_model(model: Callable[..., Value], *args: Value, **kwargs: Value) -> Value:
    """A call of the model itself."""
    return model(*args, **kwargs)


_PLAIN = {"requires_grad_", "retain_grad", "detach_"}
_ABOUT = {"__len__", "size", "dim", "numel", "stride", "ndimension", "is_floating_point", "is_contiguous", "__hash__"}
_LETTERS = {"__get__", "__repr__"}


class Heard(Tensor):
    """A tensor of a loop's batch, or made from one, with a note of how; its values are private.

    >>> heard, turn = [], Turn(2, lambda note: heard.append(note))
    >>> x = noted(torch.ones(2, 3), Note(part_of_batch, (0,), {}, turn, (2, 3)))
    >>> (x * 2).mean().backward()
    >>> heard[0].function.__name__, heard[0].args[0].function.__name__
    ('mean', 'mul')
    """

    note: Note

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Value], types: Value, args: tuple[Value, ...] = (), kwargs: Value = None
    ) -> Value:
        """Do it, and write it down."""
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunctionSubclass():
            found = func(*args, **kwargs)
        turn = next(_heard_in((args, kwargs))).note.turn
        name = getattr(func, "__name__", "")
        _told_rows(turn, name, args, found)
        if name == "tolist":
            turn.looked = True
        elif isinstance(found, Tensor | tuple | list) and not isinstance(found, torch.Size):
            if edits(name, kwargs):
                first = args[0] if args else None
                if isinstance(first, Heard):
                    first.note = _noted(func, args, kwargs, turn, first, "was edited in place")
                return found
            return wrapped(found, lambda value, path: _noted(func, args, kwargs, turn, value, path=path))
        elif name == "__setitem__" and isinstance(args[0], Heard):
            args[0].note = _noted(func, args, kwargs, turn, args[0], "was edited in place")
        elif name not in _ABOUT and not (name in _LETTERS and not isinstance(found, float | bool)):
            turn.looked = True
        return found

    def backward(self, *args: Value, **kwargs: Value) -> None:
        """Let the engine hear of the loss; gradients are taken in the private step."""
        if args or kwargs.get("gradient") is not None or kwargs.get("inputs") is not None:
            raise ModelError("loss.backward() is heard without arguments: add losses up and call it once")
        self.note.turn.hear(self.note)


def _told_rows(turn: Turn, name: str, args: tuple[Value, ...], found: Value) -> None:
    """Remember what a loop was told of the number of rows, by a tensor that has them."""
    with torch._C.DisableTorchFunctionSubclass():
        if args and isinstance(args[0], Tensor) and args[0].ndim and args[0].shape[0] == turn.rows:
            if isinstance(found, torch.Size):
                turn.counts.add(found[0])
            elif name in ("__len__", "numel") or (name == "size" and found == turn.rows):
                turn.counts.add(found)


def edits(name: str, kwargs: Mapping[str, Value]) -> bool:
    """Whether a function changes what it is given."""
    inplace = name.endswith("_") and not name.endswith("__") and name not in _PLAIN
    return inplace or kwargs.get("out") is not None or kwargs.get("inplace") is True


def _noted(
    func: Callable[..., Value],
    args: tuple[Value, ...],
    kwargs: Mapping[str, Value],
    turn: Turn,
    value: Tensor,
    flaw: str = "",
    path: tuple[object, ...] = (),
) -> Note:
    shape, followed = tuple(value.shape), torch.is_grad_enabled()
    made = Note(func, notes_of(args), cast("dict[str, Value]", notes_of(kwargs)), turn, shape, followed, flaw)
    return Note(picked, (made, *path), {}, turn, shape, followed) if path else made


def noted(value: Tensor, note: Note) -> Heard:
    """The same values, with a note."""
    with torch._C.DisableTorchFunctionSubclass():
        found = value.detach().as_subclass(Heard)
    found.note = note
    return found


def wrapped(found: Value, note: Callable[[Tensor, tuple[object, ...]], Note], path: tuple[object, ...] = ()) -> Value:
    """Every tensor in what a function gave, with a note of its own."""
    if isinstance(found, Tensor):
        return noted(found, note(found, path))
    if isinstance(found, Mapping):
        return type(found)({key: wrapped(part, note, (*path, key)) for key, part in found.items()})  # type: ignore[call-arg]
    if isinstance(found, tuple | list) and not isinstance(found, torch.Size):
        parts = [wrapped(part, note, (*path, place)) for place, part in enumerate(found)]
        return type(found)(*parts) if hasattr(found, "_fields") else type(found)(parts)
    return found


def plain(value: Value) -> Value:
    """The same without notes."""
    if isinstance(value, Heard):
        with torch._C.DisableTorchFunctionSubclass():
            return value.as_subclass(Tensor)
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list) and not hasattr(value, "_fields") and not isinstance(value, torch.Size):
        return type(value)(plain(part) for part in value)
    return value


def turn_of(*values: Value) -> Turn | None:
    """The turn that some of the values belong to, if one does."""
    return next((one.note.turn for one in _heard_in(values)), None)


def _heard_in(value: Value) -> Value:
    if isinstance(value, Heard):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _heard_in(part)
    elif isinstance(value, tuple | list) and not isinstance(value, torch.Size):
        for part in value:
            yield from _heard_in(part)


def notes_of(value: Value) -> Value:
    """Arguments with notes in the place of what they tell of."""
    if isinstance(value, Heard):
        return value.note
    if isinstance(value, Mapping):
        return {key: notes_of(part) for key, part in value.items()}
    if isinstance(value, tuple | list) and not isinstance(value, torch.Size):
        return (
            tuple(notes_of(part) for part in value) if isinstance(value, tuple) else [notes_of(part) for part in value]
        )
    return value
