"""Keeping: what a checkpoint holds of the model, its optimizer and its schedule, and how they go back to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from reticent.inside.sharding import whole_parts
from reticent.outside import TailAverage


@dataclass(frozen=True, eq=False)
class Parts:
    """What of a run changes from round to round, beside its standing and what the vault remembers."""

    model: nn.Module
    optimizer: Optimizer
    scheduler: LRScheduler | None
    average: TailAverage

    def to_tree(self) -> dict[str, Any]:
        """As a checkpoint holds it; frozen parameters of which each rank has a part are no part of it."""
        return {
            "average": [self.average.count, self.average.value],
            "model": whole_parts(self.model.state_dict()),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict() if self.scheduler is not None else None,
        }

    def restore(self, tree: dict[str, Any]) -> None:
        """Bring everything back to where the checkpoint was written."""
        self.average.count, self.average.value = tree["average"]
        now = self.model.state_dict()
        self.model.load_state_dict({**now, **tree["model"]} if len(whole_parts(now)) < len(now) else tree["model"])
        self.optimizer.load_state_dict(tree["optimizer"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(tree["scheduler"])
