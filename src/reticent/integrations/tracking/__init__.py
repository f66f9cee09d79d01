"""Curves of a run elsewhere: TensorBoard, MLflow, Weights & Biases; public numbers only."""

from reticent.integrations.tracking.boards import MLflow, TensorBoard, WandB
from reticent.integrations.tracking.tracker import Tracker

__all__ = ["MLflow", "TensorBoard", "Tracker", "WandB"]
