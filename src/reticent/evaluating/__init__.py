"""Evaluating: what a model answers, and how good its answers are."""

from reticent.evaluating.measuring import accuracy, evaluate
from reticent.evaluating.predicting import in_rows, predict

__all__ = ["accuracy", "evaluate", "in_rows", "predict"]
