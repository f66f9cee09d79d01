"""The schedules of a module, stepped and kept by the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from reticent.errors import SettingError
from reticent.integrations.opacus.listening import Value

Timed: TypeAlias = tuple[LRScheduler, str, int]
"""A schedule, stepped every so many steps or epochs."""


class Schedules(LRScheduler):
    """The schedules of a module as one that a run steps and keeps: by rounds or by epochs, as often as each says."""

    def __init__(self, optimizer: Optimizer, parts: Sequence[Timed], each: int):
        self.optimizer, self.parts, self.each, self.last_epoch = optimizer, tuple(parts), each, 0

    def step(self, epoch: int | None = None) -> None:  # noqa: ARG002 - as torch has it
        """After a round."""
        self.last_epoch += 1
        for schedule, interval, frequency in self.parts:
            if self.last_epoch % (frequency * (self.each if interval == "epoch" else 1)) == 0:
                schedule.step()

    def get_last_lr(self) -> list[Value]:
        """The learning rates now."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Value]:
        """How far it has come, and each of them."""
        return {"rounds": self.last_epoch, "parts": [schedule.state_dict() for schedule, _, _ in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Value]) -> None:
        """Go on from there."""
        self.last_epoch = state_dict["rounds"]
        for (schedule, _, _), state in zip(self.parts, state_dict["parts"], strict=True):
            schedule.load_state_dict(state)


def single(found: Value, schedules: list[Timed]) -> Optimizer:
    """The one optimizer of what `configure_optimizers` gave, and its schedules with when they are stepped."""
    if isinstance(found, dict):
        config = found.get("lr_scheduler")
        found = [found["optimizer"]], [] if config is None else [config]
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], list):
        for config in found[1]:
            said = config if isinstance(config, dict) else {"scheduler": config}
            schedules.append((said["scheduler"], said.get("interval", "epoch"), int(said.get("frequency", 1))))
        found = found[0]
    if isinstance(found, list | tuple) and len(found) == 1:
        found = found[0]
    if not isinstance(found, Optimizer):
        raise SettingError("configure_optimizers must give one optimizer; several go with rt.Run (docs/lightning.md)")
    return found
