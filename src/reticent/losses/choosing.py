"""Choosing a loss where none was given: by the types and shapes of targets and outputs, never by their values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from reticent.errors import SettingError


def choose(output: Tensor, target: Any) -> tuple[str, str]:
    """The name of the loss, and why: what the targets and a model's outputs for made-up rows show in public.

    >>> choose(torch.zeros(4, 10), torch.zeros(4, dtype=torch.int64))
    ('cross_entropy', 'the targets are whole numbers and the model has 10 outputs')
    >>> choose(torch.zeros(4, 1), torch.zeros(4))
    ('mse', 'the targets are floating numbers, one for each output')
    """
    if not isinstance(target, Tensor):
        raise SettingError(f"the targets are a {type(target).__name__}: say which loss=, such as a function of yours")
    alike = _squeezed(output) == _squeezed(target)
    if target.is_floating_point():
        if alike:
            return "mse", "the targets are floating numbers, one for each output"
        raise SettingError(
            f"the targets are {target.dtype}, {_shape(target)} for each example, and the outputs are {_shape(output)}: "
            "for classes give whole numbers (y.long()), for quantities as many outputs as targets, or say which loss="
        )
    if alike and target.dtype == torch.bool:
        return "bce", "the targets are yes or no, one for each output"
    if alike:
        raise SettingError(
            "the targets are whole numbers, one for each output, which may be classes or quantities: say loss='bce' "
            "for yes (1) or no (0), loss='mse' or 'poisson' for quantities, or loss='ordinal' for ranks"
        )
    return "cross_entropy", f"the targets are whole numbers and the model has {_shape(output)} outputs"


def _squeezed(part: Tensor) -> tuple[int, ...]:
    shape = tuple(part.shape[1:])
    return shape[:-1] if shape[-1:] == (1,) else shape


def _shape(part: Tensor) -> str:
    return " x ".join(map(str, part.shape[1:])) or "1"
