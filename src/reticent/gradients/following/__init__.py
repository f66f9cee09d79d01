"""Following: whose each tensor of a forward pass is, from the functions that made it; one family a file."""

from __future__ import annotations

from reticent.gradients.following import (
    elementwise,
    indexing,
    layers,
    products,
    reading,
    reductions,
    routing,
    sequences,
    shapes,
)
from reticent.gradients.following.follower import ABOUT_SHAPES, Args, Function, Kwargs, Whose
from reticent.gradients.following.places import Each, NotFollowed, Packed, Place, Where
from reticent.gradients.following.routes import Routed, Routing

__all__ = [
    "ABOUT_SHAPES",
    "Args",
    "Each",
    "Function",
    "Kwargs",
    "NotFollowed",
    "Packed",
    "Place",
    "Routed",
    "Routing",
    "Where",
    "Whose",
    "elementwise",
    "indexing",
    "layers",
    "products",
    "reading",
    "reductions",
    "routing",
    "sequences",
    "shapes",
]  # fmt: skip
