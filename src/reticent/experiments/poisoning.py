"""Poisoned examples: labels flipped on purpose, to see whether a test finds the batch that holds them (PD-SGD, 6.2)."""

from __future__ import annotations

from dataclasses import replace

import torch

from reticent.data import Examples
from reticent.experiments.request import Request
from reticent.inside import Partition, RoundSettings


def poisoned(examples: Examples, asked: Request, classes: int) -> Examples:
    """The examples, the first of them with the label of the next class where the method keeps these together."""
    sampler, batch_size = asked.method.sampler, asked.batch_size or asked.size
    if not isinstance(sampler, Partition) or not sampler.poison:
        return examples
    count = sampler.poisoned(RoundSettings(asked.size, batch_size, 1.0, 0.0))
    return replace(examples, y=flipped(examples.y, count, classes))


def flipped(labels: torch.Tensor, count: int, classes: int) -> torch.Tensor:
    """The labels, the first `count` of them moved on to the next class.

    >>> flipped(torch.tensor([0, 2, 1]), 2, classes=3).tolist()
    [1, 0, 1]
    """
    return torch.cat([(labels[:count] + 1) % classes, labels[count:]])
