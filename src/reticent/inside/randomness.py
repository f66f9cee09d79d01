"""Randomness: all secret randomness, a fresh cryptographic stream for every place it is needed, from one key."""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import Any

import numpy as np
from randomgen import AESCounter

from reticent.errors import SettingError

GENERATOR = (
    "secret randomness is AES-128 in counter mode, keyed for each place in the run with BLAKE2b from 256 secret bits"
)
"""What every guarantee rests on."""


class Randomness:
    """Streams of secret randomness, one for each place in a run.

    Two places share a stream with no more chance than two random keys are equal, and the same place gives the same
    stream again, so a round that a crash cut short can be replayed with the same draw and the same noise.

    >>> randomness = Randomness.from_seed(7)
    >>> randomness.stream(3, "noise", 0).random() == randomness.stream(3, "noise", 0).random()
    True
    >>> randomness.seeded, Randomness.fresh().seeded
    (True, False)
    """

    def __init__(self, key: bytes, *, seeded: bool):
        self._key = key
        self.seeded = seeded

    @classmethod
    def fresh(cls) -> Randomness:
        """Randomness nobody can foresee: the key comes from the operating system."""
        return cls(os.urandom(32), seeded=False)

    @classmethod
    def from_seed(cls, seed: int) -> Randomness:
        """Repeatable randomness, for tests and papers; a guarantee made with them says so."""
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise SettingError(f"seed must be a whole number, 0 or more, or None for a secret one; got {seed!r}")
        return cls(hashlib.blake2b(f"reticent seed {seed}".encode(), digest_size=32).digest(), seeded=True)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Randomness:
        """The randomness of a run that goes on."""
        return cls(state["key"], seeded=state["seeded"])

    def state(self) -> dict[str, Any]:
        """What a checkpoint must keep, and keep secret, to go on with the same randomness."""
        return {"key": self._key, "seeded": self.seeded}

    def stream(self, *place: int | str) -> np.random.Generator:
        """The stream that belongs to a place, such as (round, "noise", 0, block).

        `key` and `counter` are taken as they are; `seed` would be folded by a generator that can be inverted.
        """
        digest = hashlib.blake2b(repr(place).encode(), key=self._key, digest_size=32).digest()
        key, counter = int.from_bytes(digest[:16], "little"), int.from_bytes(digest[16:], "little")
        return np.random.Generator(AESCounter(key=key, counter=counter))

    def seal(self, *parts: bytes | memoryview) -> str:
        """A keyed fingerprint: equal for equal bytes, and without the key it says nothing about them."""
        mac = hmac.new(self._key, digestmod="sha256")
        for part in parts:
            mac.update(part)
        return mac.hexdigest()[:32]
