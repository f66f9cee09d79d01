"""How many examples a model answers rightly: a count, of which one example is one at most."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reticent.inside.drawn import Drawn


@dataclass(frozen=True, eq=False)
class RightAnswers:
    """The number of right answers of a classifier in evaluation mode.

    >>> RightAnswers(nn.Linear(2, 2)).sensitivity
    1.0
    """

    model: nn.Module
    sensitivity: float = 1.0

    @torch.no_grad()
    def answer(self, drawn: Drawn) -> Tensor:
        """Count them; an answer that is not a number is a wrong one."""
        total = torch.zeros((), dtype=torch.float64)
        was_training = self.model.training
        self.model.eval()
        try:
            for batch in drawn.batches():
                x, y = batch
                answers = self.model(x)
                total += ((answers.argmax(1) == y) & torch.isfinite(answers).all(1)).double().sum().cpu()
        finally:
            self.model.train(was_training)
        return total
