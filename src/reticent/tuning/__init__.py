"""Tuning: an honest search for settings, whose cost is part of the guarantee of the model that is released."""

from reticent.tuning.choices import CHOICES, grid
from reticent.tuning.private import tune
from reticent.tuning.public import tune_on_public
from reticent.tuning.tuned import Tuned

__all__ = ["CHOICES", "Tuned", "grid", "tune", "tune_on_public"]
