"""What comes of tuning: the model, the settings it was made with, and what the search cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reticent.trained import Trained


@dataclass(frozen=True, eq=False)
class Tuned:
    """The best trial, and no other: its model with its guarantee, its settings and its score.

    `cost` tells what was paid: the noise of a trial, the noise that a run without tuning would have had for the same
    budget, and the epsilon of one trial by itself.
    """

    trained: Trained
    settings: Mapping[str, float]
    score: float
    score_on: str
    cost: Mapping[str, float]

    def about(self) -> dict[str, object]:
        """All of it but the model, as plain data."""
        return {
            "settings": dict(self.settings),
            "score": self.score,
            "score_on": self.score_on,
            "cost": dict(self.cost),
        }
