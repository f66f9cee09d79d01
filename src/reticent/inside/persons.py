"""Persons: all rows of one person are one example, so that persons are drawn, bounded and counted, not rows.

Persons of about as many rows are looked at together, each with its rows repeated up to the next power of two: how
a person is laid out follows from that person's rows alone, and no more than half of the work is for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reticent.accounting.adjacency import Unit
from reticent.errors import DataError, SettingError, require
from reticent.gradients.batches import map_tensors
from reticent.gradients.grouped import Grouped, GroupedLoss
from reticent.inside.columns import Columns
from reticent.inside.each_row import each_row
from reticent.inside.store import Batch, Mapped, Store, as_store
from reticent.inside.task import Loss
from reticent.inside.views import Views

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Persons:
    """A store whose examples are persons.

    Of a person with more than `most_rows` rows so many take part in a round, evenly spread, one row further each time:
    which they are follows from the number of the round and of the rows that this person has.

    >>> people = by_person((np.arange(5), np.arange(5)), groups=["ann", "bo", "ann", "ann", "bo"])
    >>> len(people), people.take(np.array([1])).rows[0].tolist()
    (2, [[0, 2, 3, 0]])
    """

    rows: Store
    _person: Numbers = field(repr=False)
    """Whose each row is; persons of few rows have the lower numbers."""
    _order: Numbers = field(repr=False)
    """The rows, person by person."""
    _counts: Numbers = field(repr=False)
    _first: Numbers = field(repr=False)
    """Where in that order each person begins."""
    most_rows: int | None = None
    assumes: tuple[str, ...] = ()
    """What was declared of the rows."""
    turn: int = 0

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def at_once(self) -> int:
        """As many as there are rows to a block, as if each had one: `parts` cuts further."""
        return self.rows.at_once

    def parts(self, index: Numbers) -> Iterator[Numbers]:
        """The persons of these numbers, in order, in parts of one layout that are taken at a time."""
        index = np.sort(index)
        widths = _widths(self._counts[index], self.most_rows)
        for width in np.unique(widths):
            alike, step = index[widths == width], max(1, self.rows.at_once // int(width))
            yield from (alike[start : start + step] for start in range(0, len(alike), step))

    def take(self, index: Numbers) -> Grouped:
        """The rows of these persons and their weights: the mean over those of a person that take part."""
        numbers, part = self.numbers(index), self._part(index)
        batch = self.rows.take(numbers.reshape(-1))
        weights = np.where(np.arange(numbers.shape[1])[None, :] < part, 1 / part, 0.0).astype(np.float32)
        return Grouped(
            map_tensors(batch, lambda one: one.reshape(*weights.shape, *one.shape[1:])), torch.from_numpy(weights)
        )

    def numbers(self, index: Numbers) -> Numbers:
        """Which rows of these persons take part, a line for each."""
        there, part = self._counts[index][:, None], self._part(index)
        place = np.arange(int(_widths(there, self.most_rows).max(initial=1)))[None, :]
        spread = (place % part * there // part + self.turn * (there > part)) % there
        return np.asarray(self._order[self._first[index][:, None] + spread])

    def _part(self, index: Numbers) -> Numbers:
        """How many rows of each of these persons take part."""
        there = self._counts[index][:, None]
        return there if self.most_rows is None else np.minimum(there, self.most_rows)

    def turned(self, turn: int) -> Persons:
        """The same as they take part in another round."""
        return replace(self, turn=turn)

    def everything(self) -> Store:
        """All rows, each with the number of its person: what a fingerprint is taken of."""
        return _Told(self.rows, self._person)


@dataclass(frozen=True, eq=False)
class _Told:
    rows: Store
    person: Numbers

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def at_once(self) -> int:
        return self.rows.at_once

    def take(self, index: Numbers) -> Batch:
        return self.rows.take(index), torch.from_numpy(self.person[index])


def by_person(examples: Any, groups: Any = None, most_rows: int | None = None) -> Store:
    """The examples as a store: of persons, if `groups` says whose each row is, or the examples do; otherwise of rows.

    Where examples are a dict of columns, `groups` may be the name of one, which is no input then.

    >>> len(by_person((np.arange(5), np.arange(5))))
    5
    """
    if groups is None:
        groups = getattr(examples, "groups", None)
    if groups is None:
        if most_rows is not None:
            raise SettingError("most_rows is the most rows a person takes part with: say with groups whose each row is")
        return store_of(examples)
    if isinstance(groups, str):
        if not isinstance(examples, Mapping) or groups not in examples:
            raise SettingError(
                f"groups is the name {groups!r}, but these examples have no named column of that kind: give an array "
                "that says whose each row is"
            )
        examples, groups = {name: part for name, part in examples.items() if name != groups}, examples[groups]
    whole = most_rows is None or (isinstance(most_rows, int) and most_rows >= 1)
    require(whole, f"most_rows must be a whole number, 1 or more, not {most_rows}")
    rows = as_store(examples)
    found = _numbered(groups, len(rows))
    counts = np.bincount(found)
    few_first = np.lexsort((np.arange(len(counts)), _widths(counts, most_rows)))
    number = np.empty_like(few_first)
    number[few_first] = np.arange(len(counts))
    person, counts = number[found], counts[few_first]
    first, declared = np.cumsum(counts) - counts, tuple(getattr(examples, "assumes", ()))
    return Persons(rows, person, np.argsort(person, kind="stable"), counts, first, most_rows, declared)


def store_of(examples: Any) -> Store:
    """The examples row by row, whoever they are of; a store stays as it is.

    >>> len(store_of((np.arange(5), np.arange(5))))
    5
    """
    return examples if isinstance(examples, Persons | Columns | Mapped) else as_store(examples)


def unit_of(examples: Store) -> Unit:
    """Who the examples are.

    >>> unit_of(by_person((np.arange(2),), groups=[7, 7]))
    'person'
    """
    return "person" if isinstance(examples, Persons) else "example"


def loss_of(examples: Store, loss: Loss, views: Views | None = None) -> Loss:
    """A loss of rows as one of these examples: of a person or of views, the mean over the rows that take part."""
    return GroupedLoss(loss) if isinstance(examples, Persons) or views is not None else loss


def features_of(function: Callable[[Tensor], Tensor], batch: Batch) -> Tensor:
    """What a function of inputs makes of each example, as float64: of a person, the mean over rows that take part.

    >>> features_of(torch.neg, (torch.tensor([[1.0], [2.0]]), torch.tensor([0, 1])))
    tensor([[-1.],
            [-2.]], dtype=torch.float64)
    """
    if not isinstance(batch, Grouped):
        return each_row(function, batch if isinstance(batch, Tensor) else batch[0]).double()
    found = each_row(function, batch.rows[0].flatten(0, 1)).double()
    weights = batch.weights.double().reshape(-1, *[1] * (found.ndim - 1))
    return (found * weights).reshape(*batch.weights.shape, *found.shape[1:]).sum(1)


def weighted_rows(batch: Batch) -> tuple[Tensor, Tensor]:
    """The inputs row by row, and what each row weighs in its example: 1 where examples are rows.

    >>> weighted_rows((torch.tensor([[1.0], [2.0]]), torch.tensor([0, 1])))[1]
    tensor([1., 1.], dtype=torch.float64)
    """
    if isinstance(batch, Grouped):
        return batch.rows[0].flatten(0, 1), batch.weights.double().flatten()
    x = batch if isinstance(batch, Tensor) else batch[0]
    return x, torch.ones(len(x), dtype=torch.float64)


def rows_in_words(examples: Store, views: Views | None) -> dict[str, object]:
    """What a run that goes on must find again."""
    found: dict[str, object] = {}
    if isinstance(examples, Persons):
        found["rows of a person"] = examples.most_rows or "all"
    if views is not None:
        found["views"] = str(views)
    return found


def _widths(counts: Numbers, most: int | None) -> Numbers:
    """As many rows as a person of so many is laid out with: the next power of two, or the most there may be."""
    width: Numbers = 2 ** np.ceil(np.log2(counts)).astype(np.int64)
    return width if most is None else np.minimum(width, most)


def _numbered(groups: Any, rows: int) -> Numbers:
    """Whose each row is, persons numbered from 0."""
    if isinstance(groups, list | tuple):  # an array of names would take nan for a name
        groups = np.array(groups, dtype=object)
    names = groups.detach().cpu().numpy() if isinstance(groups, Tensor) else np.asarray(groups)
    if names.shape != (rows,):
        raise DataError(f"groups must say of each of the {rows} rows whose it is, but has the shape {names.shape}")
    if names.dtype == object:
        known: dict[Any, int] = {}
        missing = any(name is None or name != name for name in names)  # as nan is
        try:
            found = np.array([known.setdefault(name, len(known)) for name in names], np.int64)
        except TypeError as error:
            raise DataError("groups must say whose each row is by a name or a number, one for each row") from error
    else:
        missing = names.dtype.kind in "fMm" and not np.array_equal(names, names)  # neither nan nor NaT is itself
        found = np.unique(names, return_inverse=True)[1].astype(np.int64)
    if missing:
        raise DataError("groups does not say of every row whose it is: leave such rows out, or give each a name")
    return found
