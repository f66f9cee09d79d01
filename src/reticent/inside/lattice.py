"""The lattice: an answer and its noise in whole grains, so that no digit of the answer is left below the noise.

The argument is in docs/accounting.md, "Noise on a lattice".
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reticent.errors import SettingError
from reticent.inside.cipher import Words
from reticent.inside.cores import each
from reticent.inside.normals import normals, uniform, words_for
from reticent.inside.on_device import grains, made_there
from reticent.inside.randomness import Streams
from reticent.inside.ranks import BLOCK

LAW = (
    "noise is normal on a lattice up to the 53 bits of its arithmetic, which may add 2^-40 to epsilon for each number "
    "released and is not counted"
)
"""What every guarantee says of it."""

AT_ONCE = 16 * BLOCK
"""Coordinates whose noise a device makes at once: about 150 MB on the way."""

ROUNDING = 1e-6
"""Rounding to grains moves an answer by at most this share of its sensitivity, unless the noise is huge."""

FINEST = 2.0**35
"""The most grains to a standard deviation, up to twice that: the 32 bits of the uniform part stay a sixteenth of it."""

SMALLEST = 2.0**-900
"""Grains are larger than this, so that they and their reciprocals are exact."""

REACH = 2.0**51
"""Answers are cut at so many grains, far beyond any sum; with the noise they stay whole in float64."""

DITHER = 3
"""The uniform part of the noise is 2^-4 to 2^-3 standard deviations wide: 0.07 % more noise, and nothing of the
normals' own digits is left."""

AT_MOST = 1.001
"""The noise on an answer without slack is as large as declared, and at most so much larger, in all its tail."""


@dataclass(frozen=True)
class Lattice:
    """Noise for one answer: normal of `spread` grains, rounded, and uniform on 2^`bits` grains.

    >>> Lattice.of(sensitivity=1.0, std=2.0, size=100).grain == 2.0**-24
    True
    """

    grain: float
    spread: float
    bits: int

    @classmethod
    def of(cls, *, sensitivity: float, std: float, size: int) -> Lattice:
        """The lattice of an answer of so many coordinates, all from public numbers.

        The normals are made larger by as much as rounding may add to the sensitivity.
        """
        length = math.sqrt(size)
        grain = _power_of_two(max(ROUNDING * sensitivity / length, std / FINEST))
        if not grain > SMALLEST:
            raise SettingError(
                f"noise of {std:g} on {size} numbers is below what float64 can hold: scale the answer up"
            )
        larger = grain * length / sensitivity
        if larger > 2.0**-12:
            raise SettingError(
                f"a noise multiplier of {std / sensitivity:g} on {size} numbers leaves nothing of an answer: lower it"
            )
        spread = std / grain * (1 + larger)
        return cls(grain, spread, min(32, max(0, math.frexp(spread)[1] - 1 - DITHER)))

    def noised(self, value: Tensor, place: Streams) -> Tensor:
        """The answer on the lattice, with noise; back in its own type, which is post-processing.

        Each rank makes the noise of the blocks that it holds of the answer, by all its threads, and all get the whole.
        """
        if made_there(value.device):
            return self.noised_there(value, place)
        flat = value.detach().cpu().reshape(-1).numpy()
        out = torch.empty(len(flat), dtype=value.dtype).numpy()  # numpy would ask for huge pages, which can take longer
        here = place.ranks.mine(len(flat))

        def block(number: int) -> None:
            start = here.start + number * BLOCK
            part = slice(start, min(start + BLOCK, here.stop))
            self._points(flat[part], place, start // BLOCK, out[part])

        each(math.ceil((here.stop - here.start) / BLOCK), block)
        return place.ranks.whole(torch.from_numpy(out).reshape(value.shape).to(value.device))

    def noised_there(self, value: Tensor, place: Streams) -> Tensor:
        """The same on the value's own device: no number leaves it, and none but the key and the sizes comes to it."""
        flat, key = value.detach().reshape(-1), place.key()
        out, here = torch.empty_like(flat), place.ranks.mine(len(flat))
        for start in range(here.start, here.stop, AT_ONCE):
            part = flat[start : min(start + AT_ONCE, here.stop)]
            noise = grains(
                key, place.first * BLOCK + start, len(part), spread=self.spread, bits=self.bits, device=flat.device
            )
            whole = (part.double() * (1 / self.grain)).round_().clamp_(-REACH, REACH)
            out[start : start + len(part)] = whole.add_(noise).mul_(self.grain)
        return place.ranks.whole(out.reshape(value.shape))

    def _points(self, value: NDArray[Any], place: Streams, block: int, out: NDArray[Any]) -> None:
        """The noisy points of a block."""
        words, whole, noise = _scratch(len(value))
        place.fill(block, words)
        self._noise(words, whole, noise)
        whole = whole[: len(value)]
        np.copyto(whole, value)
        whole *= 1 / self.grain  # exact: a power of two
        np.rint(whole, out=whole)
        np.clip(whole, -REACH, REACH, out=whole)
        whole += noise[: len(value)]
        whole *= self.grain
        np.copyto(out, whole, casting="same_kind")

    def _noise(self, words: Words, scratch: NDArray[np.float64], noise: NDArray[np.float64]) -> None:
        """Whole grains of noise."""
        normals(words, self.spread, scratch, noise)
        np.rint(noise, out=noise)
        if self.bits:
            np.copyto(scratch, uniform(words, self.bits))
            noise += scratch


def _power_of_two(most: float) -> float:
    """The largest that is not above."""
    return math.ldexp(0.5, math.frexp(most)[1])


_KEPT = threading.local()


def _scratch(size: int) -> tuple[Words, NDArray[np.float64], NDArray[np.float64]]:
    """Buffers of a thread for the pairs of a block; they stay in cache: fresh pages would cost as much again."""
    if not hasattr(_KEPT, "scratch"):
        _KEPT.scratch = np.empty(words_for(BLOCK), np.uint64), np.empty(BLOCK), np.empty(BLOCK)
    (words, one, two), even = _KEPT.scratch, size + size % 2
    return words[: words_for(size)], one[:even], two[:even]
