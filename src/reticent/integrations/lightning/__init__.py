"""Lightning: `PrivateTraining` makes the training steps of a module rounds of a private run."""

from reticent.integrations.lightning.module import PrivateTraining, RoundOptimizer

__all__ = ["PrivateTraining", "RoundOptimizer"]
