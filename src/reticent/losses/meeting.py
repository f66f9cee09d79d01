"""Meeting: targets brought to the shape and type of the outputs, where that leaves no doubt about what they mean."""

from __future__ import annotations

from typing import Literal, TypeAlias

from torch import Tensor

from reticent.errors import DataError

Kind: TypeAlias = Literal["classes", "binary", "ordinal", "regression"]
"""What is learned: one of several classes, yes or no (once or for each of several labels), a rank, a number."""

Pair: TypeAlias = tuple[Tensor, Tensor]


def met(kind: Kind | None, output: Tensor, target: Tensor) -> Pair:
    """Outputs and targets as a loss of this kind compares them; of none, as they are.

    >>> import torch
    >>> [part.shape for part in met("regression", torch.zeros(5, 1), torch.zeros(5, dtype=torch.int64))]
    [torch.Size([5, 1]), torch.Size([5, 1])]
    """
    match kind:
        case "classes":
            return classes(output, target)
        case "ordinal":
            return ranks(output, target)
        case "binary" | "regression":
            return one_by_one(output, target)
    return output, target


def classes(output: Tensor, target: Tensor) -> Pair:
    """Classes on the second axis of the outputs, as whole numbers (or one probability for each) in the targets."""
    if output.shape == target.shape and target.is_floating_point() and target.ndim > 1:
        return output, target.to(output.dtype)
    if target.is_floating_point():
        raise DataError(f"classes are whole numbers, but the targets are {target.dtype}: give y.long()")
    if target.ndim == output.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if output.ndim < 2 or output.ndim != target.ndim + 1:
        raise _unlike(output, target, "one output for each class, such as nn.Linear(..., classes)")
    if output.shape[2:] != target.shape[1:]:  # the words of a text, each with its classes
        if output.shape[1:-1] != target.shape[1:]:
            raise _unlike(output, target, "one output for each class")
        output = output.movedim(-1, 1)
    if output.shape[1] == 1:
        raise _unlike(output, target, "two outputs or more: with one, loss='bce' is for classes 0 and 1")
    return output, target.long()


def one_by_one(output: Tensor, target: Tensor) -> Pair:
    """A target for each output; an axis of length one makes no difference."""
    if output.ndim == target.ndim + 1 and output.shape[-1] == 1:
        target = target.unsqueeze(-1)
    elif target.ndim == output.ndim + 1 and target.shape[-1] == 1:
        target = target.squeeze(-1)
    if output.shape[1:] != target.shape[1:]:
        raise _unlike(output, target, "one output for each target")
    return output, target.to(output.dtype)


def ranks(output: Tensor, target: Tensor) -> Pair:
    """Ranks as whole numbers, and an output for each step from one rank to the next."""
    if target.is_floating_point():
        raise DataError(f"ranks are whole numbers from 0 on, but the targets are {target.dtype}: give y.long()")
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if output.ndim != 2 or target.ndim != 1:
        raise _unlike(output, target, "one output less than there are ranks, such as nn.Linear(..., ranks - 1)")
    return output, target.long()


def _unlike(output: Tensor, target: Tensor, wanted: str) -> DataError:
    mine, theirs = (tuple(part.shape[1:]) or "one number" for part in (output, target))
    return DataError(
        f"outputs and targets do not fit: of each example the model gives {mine} and the target is {theirs}; "
        f"this loss needs {wanted}"
    )
