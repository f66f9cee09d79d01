"""Digests of long answers made where they lie: what is sealed for the ledger need not leave the device.

Multilinear hashing (Lemire & Kaser 2014, section 2): of the sum of secret 64-bit multiples of all 32-bit words, modulo
2^64, the upper half. Two blocks that differ in any bit have the same with a chance of 2^-32, whatever they are, if they
do not depend on the secret; four such sums make it 2^-128. Whoever sees a digest learns of both: it must be sealed.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from reticent.inside.on_device import words
from reticent.inside.ranks import BLOCK

SUMS = 4
BYTES = 4 * SUMS
"""Of the digest of a block."""
_AT_ONCE = 16
"""Blocks, which take 8 MB in float32 on the way."""


class Digests:
    """The digests of blocks of numbers of one type, on one device.

    >>> made = Digests(bytes(32), torch.zeros(1))
    >>> one, other = (made.of(torch.full((BLOCK + 1,), value)) for value in (0.0, -0.0))
    >>> len(one), len(one[0]), one[0] == other[0], one[1] == other[1]
    (2, 16, False, False)
    """

    def __init__(self, key: bytes, like: Tensor):
        self._wide = BLOCK * like.element_size() // 4
        drawn = words(key, 0, math.ceil(2 * SUMS * (self._wide + 1) / 16), like.device).T.reshape(-1).long()
        halves = drawn[: 2 * SUMS * (self._wide + 1)].view(2, SUMS, self._wide + 1)
        secret = (halves[0] << 32) ^ (halves[1] & (2**32 - 1))
        self._multiples, self._begin = secret[:, :-1].contiguous(), secret[:, -1]

    def of(self, flat: Tensor) -> list[bytes]:
        """That of each block, the last of which may be short; only they come to the host, all at once."""
        found = [self._some(part) for part in torch.split(flat.detach(), _AT_ONCE * BLOCK)]
        if not found:
            return []
        rows = torch.cat(found).to(torch.int32).cpu().numpy()
        return [row.tobytes() for row in rows]

    def _some(self, part: Tensor) -> Tensor:
        spare = -len(part) % BLOCK
        whole = torch.nn.functional.pad(part, (0, spare)) if spare else part.contiguous()
        said = whole.view(torch.int32).view(-1, self._wide).long() & (2**32 - 1)
        sums = [(said * each).sum(1) + begin for each, begin in zip(self._multiples, self._begin, strict=True)]
        return torch.stack(sums, 1) >> 32  # integers wrap around
