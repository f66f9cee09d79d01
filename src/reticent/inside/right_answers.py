"""How many examples a model answers rightly: a count, of which one example is one at most."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reticent.errors import ReticentError
from reticent.gradients.randomness import at_rest
from reticent.inside.drawn import Drawn


@dataclass(frozen=True, eq=False)
class RightAnswers:
    """The number of right answers of a classifier in evaluation mode.

    Each example is answered by itself: what a model does with a batch is only checked as it does it in training.

    >>> RightAnswers(nn.Linear(2, 2)).sensitivity
    1.0
    """

    model: nn.Module
    sensitivity: float = 1.0

    @torch.no_grad()
    def answer(self, drawn: Drawn) -> Tensor:
        """Count them; an answer that is not a number is a wrong one."""
        with at_rest(self.model):
            right = [self._right(*row) for x, y in drawn.batches() for row in zip(x.split(1), y, strict=True)]
        return torch.tensor(float(sum(right)), dtype=torch.float64)

    def _right(self, x: Tensor, y: Tensor) -> bool:
        try:
            answer = self.model(x)
        except ReticentError:
            raise
        except Exception:  # nobody hears of it: an error would tell that this example is there
            return False
        return bool(torch.isfinite(answer).all() and (answer.argmax(1) == y).all())
