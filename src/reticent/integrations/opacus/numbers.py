"""Numbers in a loss that may have been measured on the batch it is of: in the first step there is no other to tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reticent.errors import ModelError
from reticent.integrations.opacus.listening import Turn, Value
from reticent.integrations.opacus.program import Constant, Program

_PLUS = {"add", "sub", "subtract", "__radd__", "__rsub__", "full_like", "new_full"}
_TIMES = {"mul", "multiply", "div", "divide", "true_divide", "__rmul__", "__rdiv__", "__rtruediv__"}
"""Functions in which a whole number is a quantity; elsewhere it is an axis, a place or a class."""


def refuse_measured(program: Program, turn: Turn) -> None:
    """Refuse numbers in the loss of a first step that may come from the values of its batch, or from their count."""
    if turn.looked and any(True for _ in _numbers(program)):
        raise ModelError(
            "a value of the batch was read (item(), tolist(), float(), numpy(), if) before backward(), and there are "
            "numbers in the loss that may come from it: read values after backward()"
        )
    refuse_counted(program, turn)


def refuse_counted(program: Program, turn: Turn) -> None:
    """Refuse the number of rows, or one over it, as a part of the loss."""
    told = {number for rows in turn.counts if rows for number in (rows, 1 / rows)}
    if any(isinstance(one, float | int) and one in told for one in _numbers(program)):
        raise ModelError(
            "the number of examples drawn was asked for (len(x), x.shape), and is in the loss: it is private. Let the "
            "loss be a mean, or divide by a number that is fixed (where it is, and was the same by chance: begin again)"
        )


def _numbers(program: Program) -> Iterator[Value]:
    """Numbers that are not whole, tensors of the loop's own, and whole numbers that are calculated with."""
    for one in program.operations:
        name = getattr(one.function, "__name__", "")
        for part in _parts((*one.args, *one.kwargs.values())):
            whole = isinstance(part, float | int) and not isinstance(part, bool) and float(part).is_integer()
            quantity = name in _TIMES or (name in _PLUS and part != 0)
            if isinstance(part, Constant) or (isinstance(part, float) and not whole) or (whole and quantity):
                yield part


def _parts(value: Value) -> Iterator[Value]:
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        for part in value:
            yield from _parts(part)
    else:
        yield value
