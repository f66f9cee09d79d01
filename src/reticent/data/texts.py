"""Whole texts, as the hash of each word: one that depends on no example, so that nobody's words decide another's."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reticent.data.loading.arrays import Array
from reticent.data.tables.encoding import words_of


@dataclass(frozen=True, eq=False)
class Texts:
    """The words of each text, one text after another, by their hash; `lengths` says how many each has.

    >>> hello = as_texts(["Good film", "good"])
    >>> bool(hello.codes[0] == hello.codes[2]), hello.take([1]).lengths.tolist()
    (True, [1])
    """

    codes: Array
    lengths: Array
    assumes: tuple[str, ...] = ()
    """What a guarantee rests on where these words are used."""

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, rows: Sequence[int]) -> Texts:
        """The texts at these rows, in this order."""
        lengths = self.lengths.astype(np.int64)
        ends = np.cumsum(lengths)
        parts = [self.codes[ends[row] - lengths[row] : ends[row]] for row in rows]
        return replace(self, codes=np.concatenate([self.codes[:0], *parts]), lengths=self.lengths[list(rows)])


def codes_of(words: Iterable[str]) -> Array:
    """The crc32 of each word.

    >>> codes_of(["good"]).tolist()
    [1820610194]
    """
    return np.array([zlib.crc32(word.encode()) for word in words], np.uint32)


def as_texts(texts: Iterable[str]) -> Texts:
    """Texts by the hashes of their words."""
    found = [codes_of(words_of(text)) for text in texts]
    return Texts(np.concatenate([np.zeros(0, np.uint32), *found]), np.array([len(codes) for codes in found]))
