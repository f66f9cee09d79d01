"""Canaries: examples made to be remembered, each put into the training data by a fair coin (Aerni et al. 2024)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from reticent.data.examples import Examples
from reticent.errors import SettingError, UnknownName

_NEAR = 0.05  # how far a near-duplicate is from its original, for inputs in [0, 1]


def _mislabelled(x: Tensor, _randomness: Generator) -> Tensor:
    """An ordinary input; the label alone is wrong."""
    return x


def _near_duplicates(x: Tensor, rng: Generator) -> Tensor:
    """An ordinary input, slightly changed, so that its original argues against the wrong label."""
    return (x + _NEAR * (2 * torch.rand(x.shape, generator=rng) - 1)).clamp(0, 1)


def _blank(x: Tensor, _randomness: Generator) -> Tensor:
    """No input at all."""
    return torch.zeros_like(x)


def _noise(x: Tensor, rng: Generator) -> Tensor:
    """Inputs far from all others."""
    return torch.rand(x.shape, generator=rng)


KINDS: dict[str, Callable[[Tensor, Generator], Tensor]] = {
    "mislabelled": _mislabelled,
    "near-duplicates": _near_duplicates,
    "blank": _blank,
    "noise": _noise,
}


@dataclass(frozen=True, eq=False)
class Planted:
    """Training data with some of the canaries in it: which of them is what an auditor has to guess."""

    train: Examples
    canaries: Examples
    included: Tensor


def make_canaries(
    examples: Examples, count: int, *, classes: int, kind: str = "mislabelled", seed: int = 0
) -> Examples:
    """Canaries made from `count` of the examples, every one with a label that is not its original's.

    >>> base = Examples(torch.rand(10, 4), torch.zeros(10, dtype=torch.int64))
    >>> make_canaries(base, 3, classes=2, kind="blank").y
    tensor([1, 1, 1])
    """
    if kind not in KINDS:
        raise UnknownName("canary", kind, KINDS)
    if not 0 < count <= len(examples):
        raise SettingError(f"cannot make {count} canaries from {len(examples)} examples")
    rng = Generator().manual_seed(seed)
    chosen = examples.take(torch.randperm(len(examples), generator=rng)[:count])
    if kind != "mislabelled" and not chosen.x.is_floating_point():
        raise SettingError(f"canaries of kind {kind!r} need inputs in [0, 1]; for word ids use 'mislabelled'")
    shift = torch.randint(1, classes, (count,), generator=rng)
    return Examples(KINDS[kind](chosen.x, rng), (chosen.y + shift) % classes)


def plant(examples: Examples, canaries: Examples, *, seed: int) -> Planted:
    """Add each canary to the examples with chance one half; all else stays as it is.

    Where rows belong to persons, every canary is a person of its own.

    >>> base, canaries = Examples(torch.zeros(5, 1), torch.zeros(5)), Examples(torch.ones(8, 1), torch.ones(8))
    >>> planted = plant(base, canaries, seed=1)
    >>> len(planted.train) == 5 + int(planted.included.sum())
    True
    """
    included = torch.rand(len(canaries), generator=Generator().manual_seed(seed)) < 0.5
    x, y = (torch.cat([one, more[included]]) for one, more in zip(examples, canaries, strict=True))
    groups = examples.groups
    if groups is not None:
        groups = torch.cat([groups, int(groups.max()) + 1 + torch.arange(int(included.sum()))])
    return Planted(replace(examples, x=x, y=y, groups=groups, texts=None), canaries, included)
