"""Features side by side: the rows of several, each scaled to the same length, joined into one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from reticent.data.examples import Dataset, Examples
from reticent.data.features.kept import kept
from reticent.data.loading.arrays import Array, fingerprint
from reticent.errors import DataError

LENGTH = 8.0
"""Of every joined row, as of rows of hashed words and of whitened scattering: public, and such that the rule's step is
right, so that no feature drowns another by its units."""

_ROWS = 1024


def beside(dataset: Dataset, names: Sequence[str], found: Sequence[Dataset]) -> Dataset:
    """The dataset whose rows are those of all that were found, one after the other; each example by itself."""
    for name, one in zip(names, found, strict=True):
        if one.buckets is not None:
            raise DataError(
                f"{name} is kept as numbers of buckets, beside which no other features can stand: take it alone"
            )
    train = _joined([one.train for one in found])
    tests = [one.test for one in found if one.test is not None]
    told = [one.note.removeprefix(f"{dataset.note}; ") for one in found]
    note = "; ".join([dataset.note, *dict.fromkeys(told), f"side by side, each scaled, rows of length {LENGTH:g}"])
    return replace(found[0], train=train, test=_joined(tests) if tests else None, note=note)


def _joined(parts: Sequence[Examples]) -> Examples:
    rows = [part.x.flatten(1) for part in parts]
    shape = len(rows[0]), sum(one.shape[1] for one in rows)
    identity = "\n".join(["beside", f"{LENGTH:g}", *(fingerprint(one.numpy()) for one in rows)])
    made_with = tuple(dict.fromkeys(said for part in parts for said in part.stands_on))
    return replace(parts[0], x=kept(identity, shape, partial(_fill, rows), _nobody), stands_on=made_with)


def _fill(rows: Sequence[Tensor], answers: Array) -> None:
    for start in range(0, len(answers), _ROWS):
        answers[start : start + _ROWS] = joined_rows([one[start : start + _ROWS] for one in rows]).numpy()


def joined_rows(rows: Sequence[Tensor]) -> Tensor:
    """Rows side by side, those of each of equal length; a row of zeros stays one.

    >>> joined_rows([torch.tensor([[3.0, 4.0]]), torch.tensor([[0.5]])])
    tensor([[3.3941, 4.5255, 5.6569]])
    """
    share = LENGTH / math.sqrt(len(rows))
    return torch.cat([share * torch.nn.functional.normalize(one.float(), dim=1, eps=1e-12) for one in rows], 1)


def _nobody() -> None:
    """Whoever joins tells nobody how far it is: it takes seconds."""
