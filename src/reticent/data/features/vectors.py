"""The mean of public vectors over the words of a whole text: GloVe's, or those of WordLlama."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor, nn

from reticent.data.loading.places import data_folder
from reticent.data.sets.reviews import split_words
from reticent.data.sets.vectors import GLOVE
from reticent.data.tables.encoding import words_of
from reticent.data.texts import Texts, codes_of
from reticent.errors import DataError

GLOVE_TRAINED_ON = "GloVe 6B word vectors count as public: they were trained on Wikipedia 2014 and Gigaword 5"
WORDLLAMA_MADE_OF = (
    "WordLlama's word vectors count as public: they were made of the token vectors of language models "
    "(Llama 2 and others), which were trained on texts from the web"
)
_BEGINS = "\u2581"
"""What a token that begins a word begins with."""


@dataclass(frozen=True)
class Vectors:
    """Words, and a vector for each."""

    words: Sequence[str]
    table: Tensor


def glove_vectors(folder: str | Path | None, size: int) -> Vectors:
    """GloVe's, from the data folder."""
    arrays = GLOVE[size].arrays(data_folder(folder))
    return Vectors(split_words(arrays["words"]), torch.from_numpy(arrays["vectors"].astype(np.float32)))


def wordllama_vectors(folder: str | Path | None = None) -> Vectors:  # noqa: ARG001 - they come in a package
    """WordLlama's, of the words that are one token: its weights lie in the package, and none of its code is run.

    A word in small letters counts for itself; one that is a token with a capital only, for that.
    """
    spec = find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise DataError("wordllama is not installed: pip install 'reticent[wordllama]'")
    home = Path(spec.origin).parent
    names = json.loads((home / "tokenizers" / "l2_supercat_tokenizer_config.json").read_text("utf-8"))
    with safe_open(home / "weights" / "l2_supercat_256.safetensors", "pt") as file:
        table = file.get_tensor("embedding.weight").float()
    begins = {name.removeprefix(_BEGINS): at for name, at in names["model"]["vocab"].items() if name[:1] == _BEGINS}
    places = {name.lower(): at for name, at in begins.items()} | begins
    known = {word: at for word, at in places.items() if words_of(word) == [word]}
    return Vectors(list(known), table[list(known.values())])


MEANS: dict[str, tuple[Callable[[str | Path | None], Vectors], str]] = {
    "glove-mean": (partial(glove_vectors, size=100), GLOVE_TRAINED_ON),
    "glove-mean-50": (partial(glove_vectors, size=50), GLOVE_TRAINED_ON),
    "wordllama": (wordllama_vectors, WORDLLAMA_MADE_OF),
}
"""By name, what vectors, and what they stand on."""


def mean_vectors(texts: Texts, name: str, folder: str | Path | None = None) -> Tensor:
    """The mean over the words that have a vector; zero where none has."""
    vectors = MEANS[name][0](folder)
    codes = codes_of(vectors.words)
    order = np.argsort(codes)
    places = np.searchsorted(codes[order], texts.codes).clip(max=len(codes) - 1)
    known = codes[order][places] == texts.codes
    rows = torch.from_numpy(np.where(known, order[places], len(codes)))
    table = torch.cat([vectors.table, torch.zeros(1, vectors.table.shape[1])])
    lengths = texts.lengths.astype(np.int64)
    starts = torch.from_numpy(np.cumsum(lengths) - lengths)
    sums = nn.functional.embedding_bag(rows, table, starts, mode="sum")
    owner = np.repeat(np.arange(len(lengths)), lengths)
    counts = torch.from_numpy(np.bincount(owner[known], minlength=len(lengths)))
    return sums / counts.clamp(min=1)[:, None]
