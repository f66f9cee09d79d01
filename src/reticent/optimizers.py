"""Optimizers and schedules by name."""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import LBFGS, SGD, Adam, Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from reticent.errors import ModelError, SettingError, UnknownName, require

NAMES = ("adam", "sgd", "sign_adam", "sign_sgd")
SIGN_MOMENTUM = 0.9
"""Adam's usual first decay."""


class Signs(Optimizer):
    """A step of the same length in every coordinate, by the sign of its gradient, or of a running average of them.

    Without momentum this is SignSGD (Bernstein et al. 2018). With momentum 0.9 it is what Ghosh & Das 2024 call
    SignAdam (algorithm 2): what Adam divides by is positive, so that only the sign of its first moment is left.

    >>> weight = nn.Parameter(torch.tensor([1.0, -2.0]))
    >>> weight.grad = torch.tensor([30.0, -0.01])
    >>> Signs([weight], lr=0.5).step(); weight.tolist()
    [0.5, -1.5]
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.0):
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # noqa: ARG002 - it asks no loss
        """Move every parameter that has a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                before = state.get("average", torch.zeros_like(parameter))
                state["average"] = group["momentum"] * before + parameter.grad
                parameter.sub_(state["average"].sign(), alpha=group["lr"])


class Together(Optimizer):
    """Several optimizers as one, each with parameters of its own: one release moves them all.

    >>> one, two = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    >>> both = Together([SGD([one], lr=0.5), SGD([two], lr=0.25)])
    >>> one.grad = two.grad = torch.ones(1)
    >>> both.step(); one.item(), two.item()
    (0.5, 0.75)
    """

    def __init__(self, optimizers: Sequence[Optimizer]):
        require(len(optimizers) > 0, "a run needs an optimizer: the list of them is empty")
        held = [id(p) for one in optimizers for group in one.param_groups for p in group["params"]]
        require(len(set(held)) == len(held), "a parameter belongs to two optimizers: give it to one of them")
        require(not any(isinstance(one, LBFGS) for one in optimizers), "LBFGS asks for the loss: use a first-order one")
        self.optimizers = tuple(optimizers)
        self.named = " and ".join(type(one).__qualname__ for one in optimizers)
        self._join()

    def _join(self) -> None:
        """One state and one list of groups for all: what is changed here is changed there."""
        self.defaults = {}
        self.state = defaultdict(dict, {p: known for one in self.optimizers for p, known in one.state.items()})
        self.param_groups = [group for one in self.optimizers for group in one.param_groups]
        self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = OrderedDict(), OrderedDict()
        for one in self.optimizers:
            one.state = self.state
            self._optimizer_step_pre_hooks.update(one._optimizer_step_pre_hooks)
            self._optimizer_step_post_hooks.update(one._optimizer_step_post_hooks)

    def step(self, closure: None = None) -> None:  # type: ignore[override]  # noqa: ARG002 - it asks no loss
        """A step of each."""
        for one in self.optimizers:
            one.step()

    def state_dict(self) -> dict[str, Any]:
        """That of each, with the state of its own parameters."""
        return {"optimizers": [_own_state(one) for one in self.optimizers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Into each its own."""
        for one, state in zip(self.optimizers, state_dict["optimizers"], strict=True):
            one.load_state_dict(state)
        self._join()


def _own_state(optimizer: Optimizer) -> dict[str, Any]:
    shared, own = optimizer.state, {p for group in optimizer.param_groups for p in group["params"]}
    optimizer.state = defaultdict(dict, {p: known for p, known in shared.items() if p in own})
    try:
        return optimizer.state_dict()
    finally:
        optimizer.state = shared


def together(optimizer: Optimizer | Sequence[Optimizer]) -> Optimizer:
    """One optimizer, of whatever was given."""
    return Together(optimizer) if isinstance(optimizer, list | tuple) else optimizer  # type: ignore[return-value]


def make_optimizer(
    name: str | Callable[[Any], Optimizer], model: nn.Module, lr: float, momentum: float | None
) -> Optimizer:
    """The optimizer of this name, or what makes one, on the trainable parameters."""
    trainable = [p for p in model.parameters() if p.requires_grad]
    if not trainable:
        raise ModelError(
            f"{type(model).__name__} has no parameter that is trainable: give a model with some, or set requires_grad "
            "on what is to be learned"
        )
    if not isinstance(name, str):
        if not callable(name):
            kind = type(name).__qualname__  # type: ignore[unreachable]
            raise SettingError(f"optimizer is a name, or what makes one of parameters: write lambda p: {kind}(p, ...)")
        return name(model.parameters())
    require(0 <= lr < math.inf, f"lr must be 0 or more and finite, not {lr:g}")
    require(0 <= (momentum or 0.0) < 1, f"momentum must be 0 or more and below 1, not {momentum}")
    match name:
        case "sgd":
            return SGD(trainable, lr=lr, momentum=momentum or 0.0)
        case "adam":
            return Adam(trainable, lr=lr)
        case "sign_sgd":
            return Signs(trainable, lr)
        case "sign_adam":
            return Signs(trainable, lr, SIGN_MOMENTUM)
    raise UnknownName("optimizer", name, NAMES)


def make_scheduler(name: str | None, optimizer: Optimizer, rounds: int) -> LRScheduler | None:
    """A learning rate that falls to 0 over so many kept updates: "linear" or "cosine"; None keeps it as it is."""
    shapes: dict[str, Callable[[float], float]] = {
        "linear": lambda done: 1 - done,
        "cosine": lambda done: (1 + math.cos(math.pi * done)) / 2,
    }
    if name is None or name == "constant":
        return None
    if name not in shapes:
        raise UnknownName("lr_schedule", name, [*shapes, "constant"])
    shape = shapes[name]
    return LambdaLR(optimizer, lambda step: shape(min(step / rounds, 1.0)))
