"""Whole texts, as the hash of each word: one that depends on no example, so that nobody's words decide another's."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from reticent.data.loading.arrays import Array
from reticent.data.tables.encoding import words_of
from reticent.errors import DataError
from reticent.reading import reading


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


def is_texts(source: object) -> bool:
    """Whether this is a list of texts.

    >>> is_texts(["good", "bad"]), is_texts("good"), is_texts([1])
    (True, False, False)
    """
    whole = isinstance(source, Sequence) and not isinstance(source, str | bytes) and len(source) > 0
    return whole and all(isinstance(text, str) for text in cast("Sequence[object]", source))


def texts_in(source: object) -> list[str]:
    """The texts of a list, or of a text file that has one in each line.

    >>> texts_in(["good", "bad"])
    ['good', 'bad']
    """
    if is_texts(source):
        return list(cast("Sequence[str]", source))
    if not isinstance(source, str | Path):
        raise DataError(f"this model reads texts, not a {type(source).__name__}: give a list of them, or a .txt file")
    path = Path(source)
    if path.suffix != ".txt":
        raise DataError(  # which may be a text itself, and private
            "this model reads texts: give a list of them (a single one too), or a .txt file with one in each line"
        )
    with reading(path, "give a text file in UTF-8, with one text in each line", quote=False):
        whole = path.read_text(encoding="utf-8")
    if not whole:
        raise DataError(f"{path} is empty: give one text in each line")
    return whole.removesuffix("\n").split("\n")
