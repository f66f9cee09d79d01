"""Describing: what a loss, an optimizer and a scheduler do, in words that are equal only where they do the same."""

from __future__ import annotations

import functools
import hashlib
import re
import types
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from reticent.accounting.spending import spending_of
from reticent.inside import Loss
from reticent.methods import Method, Plan

_PLAIN = (bool, int, float, complex, str, bytes, type(None))

# What moves while a scheduler is used; the rest is how it was made.
_MOVING = {"optimizer", "last_epoch", "_step_count", "_last_lr", "_is_initial", "_get_lr_called_within_step", "verbose"}

_DEEPEST = 8

# What every module has: tables of its parts, hooks and its mode.
_TORCHS_OWN = frozenset(vars(nn.Module()))


def described(value: Any, depth: int = 0) -> str:
    """One line for a number, a container or anything callable: its name, code, constants, defaults and closure.

    >>> def scaled(by):
    ...     return lambda x: by * x
    >>> described(scaled(2)) == described(scaled(2)), described(scaled(2)) == described(scaled(3))
    (True, False)
    >>> described([1, 0.5, {"a": None}])
    "[1, 0.5, {'a': None}]"
    """
    again = functools.partial(described, depth=depth + 1)
    if isinstance(value, _PLAIN):
        return repr(value)
    if depth > _DEEPEST:  # an object that holds itself
        return type(value).__qualname__
    if isinstance(value, dict):
        return "{" + ", ".join(f"{again(key)}: {again(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        parts = [again(part) for part in value]
        return f"[{', '.join(parts if isinstance(value, list | tuple) else sorted(parts))}]"
    if isinstance(value, Tensor | np.ndarray):
        return _array(value)
    if isinstance(value, nn.Module):
        return _module(value, again)
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, LRScheduler):
        return scheduled(value, depth)
    return _callable(value, again) if callable(value) else type(value).__qualname__


def _callable(value: Callable[..., Any], again: Callable[[Any], str]) -> str:
    if isinstance(value, functools.partial):
        return f"partial({again(value.func)}, {again(value.args)}, {again(value.keywords)})"
    if isinstance(value, types.MethodType):
        return f"{again(value.__func__)} of {again(value.__self__)}"
    if isinstance(value, types.FunctionType):
        return _function(value, again)
    if isinstance(value, types.BuiltinFunctionType | np.ufunc):
        return str(getattr(value, "__qualname__", value.__name__))
    inner = getattr(type(value), "__call__", None)  # noqa: B004 - its code is asked for, not whether there is any
    known = again(vars(value)) if hasattr(value, "__dict__") else ""
    return f"{type(value).__qualname__}({known}, {again(inner) if isinstance(inner, types.FunctionType) else ''})"


def _module(value: nn.Module, again: Callable[[Any], str]) -> str:
    """A module as it prints itself, with the settings that it does not print, and its tensors if none is learned."""
    shown = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    parts = {
        path: {name: part for name, part in vars(module).items() if name not in _TORCHS_OWN}
        for path, module in value.named_modules()
    }
    settings = {path: part for path, part in parts.items() if part}
    if any(parameter.requires_grad for parameter in value.parameters()):
        return f"{shown} with {again(settings)}"  # its weights are what is learned
    tensors = {**dict(value.named_parameters()), **dict(value.named_buffers())}
    code = [again(type(module).forward) for module in value.modules()]
    return f"{shown} with {again(settings)}, {again(tensors)}, {again(sorted(set(code)))}"


def _function(value: types.FunctionType, again: Callable[[Any], str]) -> str:
    closed = {
        name: cell.cell_contents
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        if cell != types.CellType()
    }
    outside = {name: value.__globals__.get(name) for name in value.__code__.co_names}
    numbers = {name: part for name, part in outside.items() if isinstance(part, bool | int | float)}
    parts = {
        "code": _code(value.__code__),
        "defaults": again([value.__defaults__, value.__kwdefaults__]),
        "closure": again(closed),
        "globals": again(numbers),
    }
    said = ", ".join(f"{name} {part}" for name, part in parts.items() if part not in ("{}", "[None, None]"))
    return f"{value.__module__}.{value.__qualname__}({said})"


def _code(code: types.CodeType) -> str:
    """The instructions as a fingerprint, the constants in full: a number that changed can be read in the error."""
    made = hashlib.blake2b(code.co_code + repr(code.co_names).encode(), digest_size=8).hexdigest()
    constants = [_code(one) if isinstance(one, types.CodeType) else described(one) for one in code.co_consts]
    return f"{made} with [{', '.join(constants)}]"


def _array(value: Tensor | np.ndarray) -> str:
    about = f"{value.dtype} of shape {tuple(value.shape)}"
    if isinstance(value, Tensor):
        if value.requires_grad:
            return about  # it is learned
        value = value.detach().cpu().contiguous().numpy()
    return f"{about}, {hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=8).hexdigest()}"


def optimized(optimizer: Optimizer) -> list[str]:
    """Each group of parameters: all that the optimizer was told, but not the tensors."""
    return [
        described({name: len(part) if name == "params" else part for name, part in sorted(group.items())})
        for group in optimizer.param_groups
    ]


def scheduled(scheduler: LRScheduler | None, depth: int = 0) -> str:
    """How a scheduler was made: its numbers, lists and functions, and those of schedulers inside it.

    >>> scheduled(None)
    'None'
    """
    if scheduler is None:
        return "None"
    known = {name: part for name, part in sorted(vars(scheduler).items()) if name not in _MOVING}
    return f"{type(scheduler).__qualname__}({described(known, depth + 1)})"


def described_run(
    method: Method,
    plan: Plan,
    loss: Loss,
    optimizer: Optimizer,
    scheduler: LRScheduler | None,
    *,
    diagnostics: bool,
    **rest: object,
) -> dict[str, object]:
    """Everything that a run which goes on must have in common with the one that began."""
    return {
        "method": repr(method),
        "numbers": repr(plan.settings),
        "rounds": plan.rounds,
        "delta": plan.price.delta,
        "adjacency": None if plan.adjacency == "zero-out" else plan.adjacency,  # as it always was
        "already": spending_of(plan.already).to_json()["events"],
        "loss": described(loss),
        "optimizer": getattr(optimizer, "named", type(optimizer).__qualname__),
        "optimizer settings": optimized(optimizer),
        "scheduler": scheduled(scheduler),
        "private diagnostics": diagnostics,
        **rest,
    }
