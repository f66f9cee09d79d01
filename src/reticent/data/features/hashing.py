"""Hashed words: which of so many buckets a text's words fall into. No public data, and nobody else's: only a hash."""

from __future__ import annotations

import re

import numpy as np
import torch
from torch import Tensor

from reticent.data.loading.arrays import Array
from reticent.data.texts import Texts
from reticent.errors import DataError

WORDS, PAIRS = "hashed-words", "hashed-ngrams"
BUCKETS = 16_384
_MOST = {WORDS: 512, PAIRS: 1024}
"""Buckets of one text that count, at most: a public number, or the longest text would show in the width of all."""
_NAME = re.compile(rf"({WORDS}|{PAIRS})(?:-(\d+))?")


def hashes(name: str) -> tuple[str, int] | None:
    """What is hashed, and into how many buckets; None where features of this name are no hashes.

    >>> hashes("hashed-words"), hashes("hashed-ngrams-4096"), hashes("scattering")
    (('hashed-words', 16384), ('hashed-ngrams', 4096), None)
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    kind, said = found.groups()
    buckets = BUCKETS if said is None else int(said)
    if not 2 <= buckets <= 2**24:
        raise DataError(f"{name}: the number of buckets must be from 2 to {2**24}")
    return kind, buckets


def present(texts: Texts, kind: str, buckets: int) -> Tensor:
    """The buckets (from 1) that words of each text are in, rising, after zeros that fill the row up.

    `hashed-ngrams` has every two neighbours beside the words.

    >>> from reticent.data.texts import as_texts
    >>> present(as_texts(["good, good film", ""]), "hashed-words", 100)[:, -3:].tolist()
    [[0, 3, 95], [0, 0, 0]]
    """
    lengths, most = texts.lengths.astype(np.int64), _MOST[kind]
    owner = np.repeat(np.arange(len(lengths)), lengths)
    found: Array = owner * buckets + texts.codes % np.uint32(buckets)
    if kind == PAIRS:
        neighbours = owner[1:] == owner[:-1]
        pairs = _paired(texts.codes[:-1][neighbours], texts.codes[1:][neighbours]) % np.uint32(buckets)
        found = np.concatenate([found, owner[1:][neighbours] * buckets + pairs])
    found.sort()  # far quicker than np.unique, which hashes
    found = found[np.diff(found, prepend=-1) > 0]
    owner = found // buckets
    counts = np.bincount(owner, minlength=len(lengths))
    from_the_end = (np.cumsum(counts)[owner] - 1) - np.arange(len(found))
    kept = from_the_end < most
    rows = np.zeros((len(lengths), most), np.int32)
    rows[owner[kept], most - 1 - from_the_end[kept]] = found[kept] % buckets + 1
    return torch.from_numpy(rows)


def _paired(first: Array, second: Array) -> Array:
    """A hash of two words in their order, from the hash of each."""
    mixed = (first * np.uint32(0x9E3779B1) + np.uint32(1)) ^ second
    mixed = (mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    return np.asarray(mixed ^ (mixed >> np.uint32(13)))
