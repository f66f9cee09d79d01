"""The mean of GloVe's vectors over the words of a whole text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from reticent.data.loading.places import data_folder
from reticent.data.sets.reviews import split_words
from reticent.data.sets.vectors import GLOVE
from reticent.data.texts import Texts, codes_of

MEANS = {"glove-mean": 100, "glove-mean-50": 50}
"""By name, how many numbers a vector has."""
GLOVE_TRAINED_ON = "GloVe 6B word vectors count as public: they were trained on Wikipedia 2014 and Gigaword 5"


def mean_vectors(texts: Texts, size: int, folder: str | Path | None = None) -> Tensor:
    """The mean over the words that GloVe knows; zero where it knows none."""
    arrays = GLOVE[size].arrays(data_folder(folder))
    codes = codes_of(split_words(arrays["words"]))
    order = np.argsort(codes)
    places = np.searchsorted(codes[order], texts.codes).clip(max=len(codes) - 1)
    known = codes[order][places] == texts.codes
    rows = torch.from_numpy(np.where(known, order[places], len(codes)))
    table = torch.cat([torch.from_numpy(arrays["vectors"].astype(np.float32)), torch.zeros(1, size)])
    lengths = texts.lengths.astype(np.int64)
    starts = torch.from_numpy(np.cumsum(lengths) - lengths)
    sums = nn.functional.embedding_bag(rows, table, starts, mode="sum")
    owner = np.repeat(np.arange(len(lengths)), lengths)
    counts = torch.from_numpy(np.bincount(owner[known], minlength=len(lengths)))
    return sums / counts.clamp(min=1)[:, None]
