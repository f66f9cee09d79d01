"""Seals: keyed fingerprints of answers, by which a round that is repeated is held to what it released."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from reticent.inside.digests import BYTES, Digests
from reticent.inside.on_device import made_there
from reticent.inside.randomness import Randomness
from reticent.inside.ranks import BLOCK, Ranks
from reticent.inside.store import as_bytes


class Seals:
    """Seals of answers; where noise is made on a device, a long answer does not leave it for this either."""

    def __init__(self, randomness: Randomness, ranks: Ranks):
        self._randomness, self._ranks = randomness, ranks
        self._digests: dict[tuple[int, torch.device], Digests] = {}

    def of(self, value: Tensor, context: Sequence[bytes | memoryview] = ()) -> str:
        """The seal of an answer, with all that what follows depends on; of a long one, block by block."""
        flat = value.detach().reshape(-1)
        parts = [as_bytes(flat)] if len(flat) <= BLOCK else self._by_block(flat)
        return self._randomness.seal(*parts, *context)

    def _by_block(self, flat: Tensor) -> Sequence[bytes | memoryview]:
        """What is sealed of each block, by the rank that holds it."""
        if not made_there(flat.device):
            return self._ranks.by_block(len(flat), lambda part: self._randomness.seal(as_bytes(flat[part])).encode())
        kind = flat.element_size(), flat.device  # a wider type has more words in a block
        if kind not in self._digests:
            self._digests[kind] = Digests(self._randomness.at("digests").key(), flat)
        here = self._ranks.mine(len(flat))
        own = self._digests[kind].of(flat[here])
        return self._ranks.by_block(
            len(flat), lambda part: own[(part.start - here.start) // BLOCK] if part.stop else bytes(BYTES)
        )
