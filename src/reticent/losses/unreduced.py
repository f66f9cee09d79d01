"""Unreduced: a loss of outputs and targets without its mean or sum over the batch, where it can be told so."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any, cast

from torch import nn

from reticent.errors import ModelError
from reticent.losses.known import KNOWN, KnownLoss
from reticent.losses.pairing import Answers, Paired, Several


def known_loss(loss: Callable[..., Any], model: nn.Module) -> Paired | None:
    """One of torch's own losses, module or function, for each example, in the model's type; None for any other.

    >>> known_loss(nn.BCEWithLogitsLoss(), nn.Linear(2, 1)).name
    'bce'
    """
    loss = _as_module(loss)
    known = next((one for one in KNOWN if type(loss) is one.module), None)
    if known is None or not isinstance(loss, nn.Module):
        return None
    several = _said(getattr(loss, "reduction", "mean"))
    made = copy.deepcopy(loss)
    if hasattr(made, "reduction"):
        setattr(made, "reduction", "none")  # noqa: B010 - torch types the attributes of a module as tensors
    first = next(model.parameters(), None)
    if first is not None:
        made.to(first.device, first.dtype)
    return Paired(known.name, made, known.kind, _answers(known, made), several)


def _answers(known: KnownLoss, made: nn.Module) -> Answers:
    return "values" if known.answers == "logs" and not getattr(made, "log_input", True) else known.answers


def _as_module(loss: Callable[..., Any]) -> Callable[..., Any]:
    """A function of torch, with the settings of a partial, as the module that does the same."""
    function, settings = (loss.func, dict(loss.keywords)) if isinstance(loss, functools.partial) else (loss, {})
    known = next((one for one in KNOWN if one.function is not None and one.function is function), None)
    if known is None or (isinstance(loss, functools.partial) and loss.args):
        return loss
    if settings.keys() - inspect.signature(known.module).parameters.keys():
        return loss
    return known.module(**settings)


def own_loss(loss: Callable[..., Any], name: str) -> Paired:
    """Any other loss of outputs and targets; a setting called `reduction` is turned off, as torch's own have it.

    >>> own_loss(lambda output, target: (output - target).abs(), "mine").several is None
    True
    """
    if isinstance(loss, nn.Module) and isinstance(getattr(loss, "reduction", None), str):
        several = _said(cast("str", loss.reduction))
        loss = copy.copy(loss)
        setattr(loss, "reduction", "none")  # noqa: B010 - as above
        return Paired(name, loss, several=several)
    settings = loss.keywords if isinstance(loss, functools.partial) else {}
    if "reduction" in _parameters(loss):
        default = _parameters(loss)["reduction"].default
        several = _said(settings.get("reduction", default))
        return Paired(name, functools.partial(loss, reduction="none"), several=several)
    return Paired(name, loss, several=None)


def _parameters(loss: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(loss).parameters)
    except (TypeError, ValueError):  # some functions that are not written in Python have none
        return {}


def _said(reduction: object) -> Several:
    """What becomes of several numbers of one example: `batchmean` adds them up, and so does `sum`."""
    return "sum" if reduction in ("sum", "batchmean") else "mean"


def refuse_parameters(loss: Callable[..., Any], model: nn.Module) -> None:
    """Refuse a loss with parameters of its own: no private step would train them."""
    mine = {id(parameter) for parameter in model.parameters()}
    for name, parameter in loss.named_parameters() if isinstance(loss, nn.Module) else ():
        if parameter.requires_grad and id(parameter) not in mine:
            raise ModelError(
                f"the loss has a parameter {name!r} of its own, which the run would not train: put it into the model, "
                "or freeze it with requires_grad_(False)"
            )
