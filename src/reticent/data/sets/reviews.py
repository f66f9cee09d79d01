"""IMDb film reviews as text: the official archive or the one file of a package, and words as numbers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reticent.data.loading.archives import tar_members
from reticent.data.loading.arrays import Arrays
from reticent.data.tables.encoding import words_of
from reticent.data.texts import as_texts
from reticent.errors import DataError

VOCABULARY = 20_000
START, RARE, RESERVED = 1, 2, 4  # 0 is padding, 3 unused, words begin at 4

OFFICIAL, PACKAGED = "aclImdb_v1.tar.gz", "reviews.json"


@dataclass(frozen=True)
class Reviews:
    """Texts, whether each is positive (1), and its rating from 1 to 10 (0 where the source does not say)."""

    texts: tuple[str, ...]
    labels: tuple[int, ...]
    ratings: tuple[int, ...]


def rank_words(texts: Iterable[str]) -> list[str]:
    """All words, the most frequent first; equal counts in alphabetical order.

    >>> rank_words(["b a", "b c"])
    ['b', 'a', 'c']
    """
    counts = Counter(word for text in texts for word in words_of(text))
    return sorted(counts, key=lambda word: (-counts[word], word))


def encode(texts: Sequence[str], ranked: Sequence[str]) -> list[list[int]]:
    """Keras's numbering: 1 starts a review, 2 is a word beyond the first 19,996, unknown words are dropped.

    >>> encode(["the end"], ["the", "of"])
    [[1, 4]]
    """
    frequent = VOCABULARY - RESERVED
    ids = {word: rank + RESERVED if rank < frequent else RARE for rank, word in enumerate(ranked)}
    return [[START, *(ids[word] for word in words_of(text) if word in ids)] for text in texts]


def read_official(folder: Path) -> tuple[Reviews, Reviews]:
    """Training and test reviews from the official archive, in file name order, negative ones first."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for path, file in tar_members(folder / OFFICIAL):
        part, kind, name = (["", "", "", *path.split("/")])[-3:]
        if kind in ("neg", "pos") and name.endswith(".txt"):
            found.setdefault((part, kind), []).append((name, file.read().decode("utf-8")))
    return _official_part(found, "train"), _official_part(found, "test")


def _official_part(found: dict[tuple[str, str], list[tuple[str, str]]], part: str) -> Reviews:
    rows = [
        (text, label, int(name.removesuffix(".txt").rsplit("_", 1)[1]))
        for label, kind in enumerate(("neg", "pos"))
        for name, text in sorted(found.get((part, kind), []))
    ]
    if not rows:
        raise DataError(f"{OFFICIAL} holds no {part} reviews")
    texts, labels, ratings = zip(*rows, strict=True)
    return Reviews(texts, labels, ratings)


def read_packaged(folder: Path) -> tuple[Reviews, Reviews]:
    """Training and test reviews from one JSON list: negative test, negative training, then the positive ones."""
    entries = json.loads((folder / PACKAGED).read_text("utf-8"))
    quarter = len(entries) // 4
    quarters = [entries[start : start + quarter] for start in range(0, 4 * quarter, quarter)]
    test, train = quarters[0] + quarters[2], quarters[1] + quarters[3]
    return _packaged_part(train), _packaged_part(test)


def _packaged_part(entries: list[dict[str, str | int]]) -> Reviews:
    texts = tuple(str(entry["t"]) for entry in entries)
    return Reviews(texts, tuple(int(entry["s"]) for entry in entries), (0,) * len(texts))


def encoded_arrays(train: Reviews, test: Reviews) -> Arrays:
    """Both parts as word ids, with the vocabulary ranked on the training texts."""
    ranked = rank_words(train.texts)
    arrays: Arrays = {"words": join_words(ranked[: VOCABULARY - RESERVED])}
    for part, reviews in (("train", train), ("test", test)):
        ids, whole = encode(reviews.texts, ranked), as_texts(reviews.texts)
        arrays |= {
            f"{part}_ids": np.concatenate([np.array(review, np.int16) for review in ids]),
            f"{part}_length": np.array([len(review) for review in ids], np.int16),
            f"{part}_codes": whole.codes,
            f"{part}_words": whole.lengths,
            f"{part}_label": np.array(reviews.labels, np.uint8),
            f"{part}_rating": np.array(reviews.ratings, np.uint8),
        }
    return arrays


def join_words(words: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Words as one array of bytes, so that they can be kept with the other arrays.

    >>> split_words(join_words(["a", "b"]))
    ['a', 'b']
    """
    return np.frombuffer("\n".join(words).encode(), np.uint8)


def split_words(joined: np.ndarray) -> list[str]:
    """The words that were joined."""
    return joined.tobytes().decode().split("\n")
