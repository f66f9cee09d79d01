"""Rules: for each torch function that uses parameters, how every example's gradient follows; one family a file."""

from __future__ import annotations

from reticent.gradients.rules import (
    attention,
    broadcast,
    convolution,
    embedding,
    experts,
    linear,
    normalisation,
    recurrent,
    steps,
)

__all__ = [
    "attention",
    "broadcast",
    "convolution",
    "embedding",
    "experts",
    "linear",
    "normalisation",
    "recurrent",
    "steps",
]
