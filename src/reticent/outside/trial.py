"""The trial: a proposed update is kept, or everything goes back to where it was."""

from __future__ import annotations

import copy
from types import TracebackType
from typing import Any

from torch import Tensor
from torch.optim import Optimizer
from torch.optim import optimizer as optimizers
from torch.optim.lr_scheduler import LRScheduler

from reticent.errors import SettingError
from reticent.inside import Flat


class Trial:
    """A transaction on parameters, optimizer and scheduler.

    Promise: leaving the block without `keep()` or `keep_state()` restores all of them bit for bit, however it is left.

    >>> import torch
    >>> net = torch.nn.Linear(1, 1); flat = Flat(net); sgd = torch.optim.SGD(net.parameters(), lr=1.0, momentum=0.9)
    >>> before = flat.vector.clone()
    >>> with Trial(flat, sgd):
    ...     flat.set_grad(torch.ones(2)); sgd.step()
    >>> torch.equal(flat.vector, before), len(sgd.state)
    (True, 0)
    """

    def __init__(
        self,
        flat: Flat,
        optimizer: Optimizer,
        scheduler: LRScheduler | None = None,
        *,
        hidden: bool = False,
        kept: bool = False,
    ):
        self._flat, self._optimizer, self._scheduler = flat, optimizer, scheduler
        self._kept, self._state_stays = kept, False
        if hidden:
            refuse_witnesses(optimizer)

    @property
    def before(self) -> Tensor:
        """The parameters before the trial."""
        return self._vector

    def keep(self, place: Tensor | None = None) -> None:
        """Adopt what happened in the trial; with a `place`, the parameters go there instead."""
        if place is not None:
            self._flat.vector.copy_(place)
        self._kept = True

    def keep_state(self) -> None:
        """Parameters and schedule go back, but what the optimizer remembers of the candidate stays."""
        self._state_stays = True

    def __enter__(self) -> Trial:
        self._vector = self._flat.kept.like(self._flat.vector).copy_(self._flat.vector)
        # `state` is keyed by parameter; a parameter that has none yet must have none again after a roll-back.
        self._state = {p: {k: _copy(v) for k, v in state.items()} for p, state in self._optimizer.state.items()}
        self._groups = [{k: _copy(v) for k, v in g.items() if k != "params"} for g in self._optimizer.param_groups]
        self._schedule = copy.deepcopy(self._scheduler.state_dict()) if self._scheduler is not None else None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._flat.clear()
        if self._kept and kind is None:
            return
        self._flat.vector.copy_(self._vector)
        if not self._state_stays or kind is not None:
            self._optimizer.state.clear()
            self._optimizer.state.update(self._state)
        if self._scheduler is not None and self._schedule is not None:
            self._scheduler.load_state_dict(self._schedule)
        for group, before in zip(self._optimizer.param_groups, self._groups, strict=True):
            group.update(before)


def refuse_witnesses(optimizer: Optimizer) -> None:
    """Refuse hooks around a step, this optimizer's or all optimizers': they would see candidates that are dropped."""
    kinds = {
        "step pre-hook": (optimizer._optimizer_step_pre_hooks, optimizers._global_optimizer_pre_hooks),
        "step post-hook": (optimizer._optimizer_step_post_hooks, optimizers._global_optimizer_post_hooks),
    }
    for said, hooks in kinds.items():
        if any(hooks):
            raise SettingError(
                f"the optimizer has a {said}, which would see candidates that are dropped and hidden: remove it, and "
                "look at the model after each step of the run instead"
            )


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else copy.deepcopy(value)
