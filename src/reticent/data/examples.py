"""What a dataset is here: pairs of tensors, a public split and a note on where it came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from reticent.data.preprocessing import Preprocessing
from reticent.data.texts import Texts
from reticent.errors import DataError

SPLIT_SEED = 0
TRAIN_PERCENT = 80
SPLIT_NOTE = f"no official split: fixed public {TRAIN_PERCENT}/{100 - TRAIN_PERCENT} split, seed {SPLIT_SEED}"


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and labels, one row each for every example; unpacks as the pair `(x, y)`.

    >>> x, y = pair = Examples(torch.zeros(3, 2), torch.tensor([0, 1, 0]))
    >>> len(pair), pair.take([0, 2]).y.tolist()
    (3, [0, 0])
    """

    x: Tensor
    y: Tensor
    preprocessing: Preprocessing | None = None
    """How they were read from the user's own files, so that new ones can be read alike."""
    groups: Tensor | None = None
    """Whose each row is, as a number; None where nothing is said of persons."""
    texts: Texts | None = None
    """The whole text of each, for features of texts."""
    stands_on: tuple[str, ...] = ()
    """What the inputs were made with that counts as public."""

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise DataError(f"{len(self.x)} inputs but {len(self.y)} labels: give one label for each input")
        if self.groups is not None and len(self.groups) != len(self.y):
            raise DataError(f"{len(self.y)} rows, but groups says of {len(self.groups)} whose they are: name each one")

    def __len__(self) -> int:
        return len(self.y)

    def __iter__(self) -> Iterator[Tensor]:
        return iter((self.x, self.y))

    def as_columns(self) -> tuple[Tensor, Tensor]:
        """The pair, for whoever reads examples column by column."""
        return self.x, self.y

    @property
    def assumes(self) -> tuple[str, ...]:
        """What a guarantee about these examples rests on: what was declared of them."""
        return self.stands_on + (() if self.preprocessing is None else self.preprocessing.assumes)

    def take(self, rows: Tensor | np.ndarray | list[int]) -> Examples:
        """The examples at these rows, in this order."""
        index = torch.as_tensor(rows, dtype=torch.int64)
        whose = None if self.groups is None else self.groups[index]
        texts = None if self.texts is None else self.texts.take(index.tolist())
        return replace(self, x=self.x[index], y=self.y[index], groups=whose, texts=texts)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Named training examples, test examples where the dataset has them, and what a reader should know."""

    name: str
    train: Examples
    test: Examples | None
    classes: int
    """How many there are, and so how many outputs a network has; 1: what is predicted is a number."""
    note: str
    names: tuple[str, ...] | None = None
    """What the classes are called; None: by their numbers."""
    buckets: int | None = None
    """Inputs say which of so many things are present, by the numbers of those from 1; None: inputs are plain."""
    made_of: tuple[int, ...] | None = None
    """The shape of one input before features were made of it; None: inputs are as they came."""

    def __post_init__(self) -> None:
        if self.names is not None and len(self.names) != self.classes:
            raise DataError(f"{self.name}: {len(self.names)} names for {self.classes} classes: give one for each")
        for part in filter(None, (self.train, self.test)):
            _check_labels(part.y, self.classes)
        if self.test is not None and self.test.x.shape[1:] != self.train.x.shape[1:]:
            shapes = f"{tuple(self.train.x.shape[1:])} and {tuple(self.test.x.shape[1:])}"
            raise DataError(f"{self.name}: inputs for training and testing have the shapes {shapes}: they must agree")

    @property
    def numeric(self) -> bool:
        """Whether a number is predicted, and no class."""
        return self.classes == 1

    @property
    def inputs(self) -> tuple[int, ...]:
        """The shape of one input, as `reticent.models.build` wants it."""
        return tuple(self.train.x.shape[1:])


def _check_labels(labels: Tensor, classes: int) -> None:
    """A label that no output stands for would stop training in the middle, and show itself by that."""
    if classes == 1:
        if not labels.is_floating_point():
            raise DataError(f"numbers to predict must be floating ones, not {labels.dtype}: give y.float()")
        return
    if labels.dtype.is_floating_point or labels.dtype.is_complex:
        raise DataError(f"labels must be whole numbers from 0 to {classes - 1}, not {labels.dtype}")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise DataError(f"labels must be whole numbers from 0 to {classes - 1}: renumber them, or state more classes")


def fixed_split(examples: Examples) -> tuple[Examples, Examples]:
    """Split 80/20 the same way on every machine, for datasets that come without a split.

    >>> train, test = fixed_split(Examples(torch.arange(10.0), torch.arange(10)))
    >>> train.y.tolist(), test.y.tolist()
    ([2, 8, 4, 9, 1, 6, 7, 3], [0, 5])
    """
    # RandomState is the one generator whose stream NumPy promises never to change.
    order = np.random.RandomState(SPLIT_SEED).permutation(len(examples))
    cut = len(examples) * TRAIN_PERCENT // 100
    return examples.take(order[:cut]), examples.take(order[cut:])
