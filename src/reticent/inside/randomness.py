"""Randomness: all secret randomness, a fresh cryptographic stream for every place it is needed, from one key."""

from __future__ import annotations

import hashlib
import hmac
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import torch
from randomgen import AESCounter

from reticent.errors import SettingError
from reticent.inside.cipher import Words, fill
from reticent.inside.ranks import ALONE, Ranks

GENERATOR = (
    "secret randomness is AES-128 in counter mode, keyed for each place in the run with BLAKE2b from 256 secret bits, "
    "normals by Box and Muller"
)
"""What every guarantee rests on."""


class Randomness:
    """Streams of secret randomness, one for each place in a run.

    Two places share a stream with no more chance than two random keys are equal, and the same place gives the same
    stream again, so a round that a crash cut short can be replayed with the same draw and the same noise. The key is
    for one run: it can be neither copied nor forked, since the same noise on other values reveals them, and the ranks
    of a run that have it use it on the same values.

    >>> randomness = Randomness.from_seed(7)
    >>> randomness.stream(3, "noise", 0).random() == randomness.stream(3, "noise", 0).random()
    True
    >>> randomness, Randomness.fresh()
    (Randomness(seeded=True), Randomness(seeded=False))
    """

    def __init__(self, key: bytes, *, seeded: bool):
        self._key: bytes | None = key
        self._process = os.getpid()
        self.seeded = seeded
        _HOLDERS.add(self)

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
        return {"key": self._secret(), "seeded": self.seeded}

    def stream(self, *place: int | str) -> np.random.Generator:
        """The stream that belongs to a place, such as (round, "noise", 0, block).

        `key` and `counter` are taken as they are; `seed` would be folded by a generator that can be inverted.
        """
        digest = self._digest(place)
        key, counter = int.from_bytes(digest[:16], "little"), int.from_bytes(digest[16:], "little")
        return np.random.Generator(AESCounter(key=key, counter=counter))  # type: ignore[arg-type] # its stubs hide the base

    def number(self, *place: int | str) -> float:
        """The first number from 0 up to 1 of a place's stream, without the set-up of a stream.

        >>> Randomness.from_seed(7).number(3, "gate") == Randomness.from_seed(7).stream(3, "gate").random()
        True
        """
        return (self._word(place) >> 11) * 2.0**-53

    def whole(self, *place: int | str) -> int:
        """The first whole number of 63 bits of a place's stream, such as a seed.

        >>> Randomness.from_seed(7).whole(3, "model") == Randomness.from_seed(7).stream(3, "model").integers(2**63)
        np.True_
        """
        return self._word(place) >> 1

    def _word(self, place: tuple[int | str, ...]) -> int:
        word = np.empty(2, np.uint64)
        self.fill(word, *place)
        return int(word[0])

    def fill(self, out: Words, *place: int | str) -> None:
        """Fill with the words of the stream that belongs to a place."""
        fill(out, self._digest(place))

    def at(self, *place: int | str, ranks: Ranks = ALONE) -> Streams:
        """All streams of a place: one for each block of numbers, or one key for a device that makes its own."""
        return Streams(self, place, ranks)

    def _digest(self, place: tuple[int | str, ...]) -> bytes:
        return hashlib.blake2b(repr(place).encode(), key=self._secret(), digest_size=32).digest()

    def seal(self, *parts: bytes | memoryview) -> str:
        """A keyed fingerprint: equal for equal bytes, and without the key it says nothing about them."""
        mac = hmac.new(self._secret(), digestmod="sha256")
        for part in parts:
            mac.update(part)
        return mac.hexdigest()[:32]

    def _secret(self) -> bytes:
        if self._key is None or self._process != os.getpid():
            raise SettingError(
                f"this randomness belongs to process {self._process}: in a forked one the same noise would fall on "
                "other values and reveal them. Start a new run in the new process."
            )
        return self._key

    def __repr__(self) -> str:
        return f"Randomness(seeded={self.seeded})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse `copy`, `deepcopy` and `pickle`, which all pass here."""
        raise SettingError(
            "the key of a run's randomness cannot be copied or pickled, nor can a run that holds it: the same noise "
            "on other values would reveal them. Start a new run, or resume a stored one from its folder."
        )


@dataclass(frozen=True)
class Streams:
    """Where secret randomness is needed, such as the noise of one release.

    >>> place = Randomness.from_seed(7).at(3, "noise", 0)
    >>> place.stream(5).random() == place.after(2).stream(3).random(), len(place.key())
    (True, 32)
    """

    _randomness: Randomness
    _place: tuple[int | str, ...]
    ranks: Ranks = ALONE
    """Who makes it together: each rank some of the blocks."""
    first: int = 0
    """The number of its first block: a part of the noise can be made alone."""

    def stream(self, block: int) -> np.random.Generator:
        """The stream of a block, counted from the first."""
        return self._randomness.stream(*self._place, self.first + block)

    def fill(self, block: int, out: Words) -> None:
        """Fill with the words of that stream."""
        self._randomness.fill(out, *self._place, self.first + block)

    def key(self) -> bytes:
        """256 bits for a counter-based generator of its own; no stream is made of them."""
        return self._randomness._digest((*self._place, "key"))

    def after(self, blocks: int) -> Streams:
        """The same place, so many blocks further on."""
        return replace(self, first=self.first + blocks)


@contextmanager
def torch_seeded(seed: int) -> Iterator[None]:
    """Dropout and random transforms draw from torch's generator: make it repeatable inside, and put it back."""
    before = torch.default_generator.get_state()
    torch.default_generator.manual_seed(seed)  # torch.manual_seed also looks for devices, at 0.6 ms a round
    try:
        yield
    finally:
        torch.default_generator.set_state(before)


_HOLDERS: weakref.WeakSet[Randomness] = weakref.WeakSet()


def _forget() -> None:
    for holder in _HOLDERS:
        holder._key = None


os.register_at_fork(after_in_child=_forget)
