"""Normals by Box and Muller from secret words, a block at a time, in memory that the caller keeps.

How far they are from exact normals is said in docs/accounting.md, "Noise on a lattice".
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
SPARE = 256
"""Words for the radii that need more than one: 32 in a block on average, and more than these in no block ever made."""

LONG = 2**53
"""Words below this one have too few digits for a radius: they get 64 bits more."""

_MOST = 2**63 - 1
_UNIT = 2.0**-63


def words_for(size: int) -> int:
    """How many words so many numbers take: radius, angle and two halves for the uniform part, for each pair.

    >>> words_for(3), words_for(2**16)
    (262, 98560)
    """
    return 3 * _pairs(size) + SPARE


def normals(words: NDArray[np.uint64], spread: float, scratch: Numbers, out: Numbers) -> None:
    """Pairs of normal numbers of this standard deviation; at most a block, which no torch operation divides up.

    A pair is a number of the first half of `out` and one of the second.
    """
    pairs = len(out) // 2
    radius, angle = scratch[:pairs], scratch[pairs : 2 * pairs]
    _radii(words[:pairs].view(np.int64), words[3 * pairs :], spread, radius)
    np.multiply(words[pairs : 2 * pairs].view(np.int64), math.pi * _UNIT, out=angle)
    turned, made = torch.from_numpy(angle), torch.from_numpy(out)
    for function, half in ((torch.cos, slice(pairs)), (torch.sin, slice(pairs, None))):
        function(turned, out=made[half])
        out[half] *= radius


def uniform(words: NDArray[np.uint64], bits: int) -> NDArray[np.int32]:
    """Whole numbers of so many bits, from words that no normal is made of."""
    pairs = (len(words) - SPARE) // 3
    found = words[2 * pairs : 3 * pairs].view(np.int32)
    found >>= 32 - bits
    return found


def _radii(words: NDArray[np.int64], spare: NDArray[np.uint64], spread: float, out: Numbers) -> None:
    """The roots of -2 log U: U from 63 bits of a word, and from 64 more where the first are small."""
    words &= _MOST
    np.multiply(words, _UNIT, out=out)
    few = np.flatnonzero(words < LONG)
    if len(few):  # among them 0, which has no logarithm
        out[few] = (words[few] + (spare[: len(few)].astype(np.float64) + 0.5) * 2.0**-64) * _UNIT
    kept = torch.from_numpy(out)
    torch.log(kept, out=kept)
    out *= -2 * spread * spread
    np.sqrt(out, out=out)  # exactly rounded, and a third quicker than torch's


def _pairs(size: int) -> int:
    return (size + 1) // 2
