"""Losses, as people write them, and as the inner room asks for them: one number for each example."""

from reticent.losses.basic import cross_entropy, squared_error
from reticent.losses.heads import HeadLoss, head_loss
from reticent.losses.known import OrdinalLoss, names
from reticent.losses.pairing import Paired
from reticent.losses.resolving import LossLike, about_loss, choose_loss, per_example

__all__ = [
    "HeadLoss",
    "LossLike",
    "OrdinalLoss",
    "Paired",
    "about_loss",
    "choose_loss",
    "cross_entropy",
    "head_loss",
    "names",
    "per_example",
    "squared_error",
]
