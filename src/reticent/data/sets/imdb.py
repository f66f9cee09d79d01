"""IMDb film reviews as rows of word ids, and the GloVe vectors of those words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from reticent.data.examples import Dataset, Examples
from reticent.data.loading.arrays import Array, Arrays
from reticent.data.loading.places import data_folder
from reticent.data.loading.stored import FileLayout, Stored
from reticent.data.sets.reviews import (
    OFFICIAL,
    PACKAGED,
    START,
    Reviews,
    encoded_arrays,
    join_words,
    read_official,
    read_packaged,
    split_words,
)
from reticent.data.texts import Texts, codes_of
from reticent.errors import DataError

LENGTH = 80  # words of each review that the papers' network reads
RESERVED_WORDS = ("<pad>", "<start>", "<rare>", "<unused>")
RANKED = (
    "which 19,996 words of the reviews were kept, all others being one, counts as public: "
    "they were ranked by the training texts, which no epsilon covers"
)


def _read_ids(folder: Path) -> Arrays:
    arrays: Arrays = {"words": join_words((folder / "words.txt").read_text("utf-8").rstrip("\n").split("\n"))}
    for part in ("train", "test"):
        with np.load(folder / f"{part}.npz") as file:
            arrays |= {f"{part}_{name}": file[name] for name in ("ids", "length", "label", "rating")}
    return arrays


def _read_official(folder: Path) -> Arrays:
    return encoded_arrays(*read_official(folder))


def _read_packaged(folder: Path) -> Arrays:
    return encoded_arrays(*read_packaged(folder))


IMDB = Stored(
    "imdb",
    (
        FileLayout(("train.npz", "test.npz", "words.txt"), _read_ids),
        FileLayout((OFFICIAL,), _read_official, published="imdb-text"),
        FileLayout((PACKAGED,), _read_packaged, published="imdb-text"),
    ),
)


def first_words(ids: Array, lengths: Array, width: int) -> Array:
    """The first `width` ids of each review, padded with 0 after shorter ones.

    >>> first_words(np.array([1, 5, 6, 1, 7]), np.array([3, 2]), 2).tolist()
    [[1, 5], [1, 7]]
    """
    lengths = lengths.astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    place = np.arange(width)
    rows = ids[np.minimum(starts[:, None] + place, len(ids) - 1)]
    return np.where(place < lengths[:, None], rows, 0).astype(np.int64)


def load_imdb(root: Path) -> Dataset:
    """Load IMDb as the first 80 word ids of each review (0 pads, 1 starts); class 1 is positive."""
    arrays = IMDB.arrays(root)
    train, test = (
        Examples(
            torch.from_numpy(first_words(arrays[f"{part}_ids"], arrays[f"{part}_length"], LENGTH)),
            torch.from_numpy(arrays[f"{part}_label"].astype(np.int64)),
            texts=_whole(arrays, part),
            stands_on=(RANKED,),
        )
        for part in ("train", "test")
    )
    note = (
        "official split of 25,000 and 25,000, negative reviews first; Maas et al. 2011; first 80 words, 20,000 ids; "
        "words ranked by the training texts, which no epsilon covers; holds duplicates: see "
        "reticent.data.without_duplicates"
    )
    return Dataset("imdb", train, test, classes=2, note=note, names=("negative", "positive"))


def _whole(arrays: Arrays, part: str) -> Texts:
    """Whole reviews: all their words where there are texts, and else those of the list."""
    if f"{part}_codes" in arrays:
        return Texts(arrays[f"{part}_codes"], arrays[f"{part}_words"])
    ids = arrays[f"{part}_ids"]
    table = codes_of([*RESERVED_WORDS, *split_words(arrays["words"])])
    return Texts(table[ids[ids != START]], arrays[f"{part}_length"] - 1, assumes=(RANKED,))


def imdb_words(folder: str | Path | None = None) -> list[str]:
    """The word of each id, from `<pad>` at 0."""
    return [*RESERVED_WORDS, *split_words(IMDB.arrays(data_folder(folder))["words"])]


def imdb_texts(folder: str | Path | None = None) -> tuple[Reviews, Reviews]:
    """The training and test reviews as text, where the data folder holds them."""
    place = data_folder(folder) / "imdb"
    if (place / OFFICIAL).exists():
        return read_official(place)
    if (place / PACKAGED).exists():
        return read_packaged(place)
    raise DataError(f"no review texts in {place} (looked for {OFFICIAL}, {PACKAGED}): run `reticent data get imdb`")
