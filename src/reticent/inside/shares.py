"""Shares: how the examples of a draw are divided, so that each share can be worked on by itself, on any rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reticent.errors import DataError, SettingError
from reticent.inside.draws import Draw
from reticent.inside.persons import Persons
from reticent.inside.ranks import Ranks
from reticent.inside.store import Batch, Store, leaves


@dataclass(frozen=True)
class Shares:
    """So many parts of a draw: equally long, or cut where the examples of one rank end and those of the next begin.

    >>> Shares(2).places(np.array([3, 5, 8])), Shares(2, cuts=(8,)).places(np.array([3, 5, 8]))
    ([slice(0, 2, None), slice(2, 3, None)], [slice(0, 2, None), slice(2, 3, None)])
    """

    count: int = 1
    cuts: tuple[int, ...] = ()
    """The number of the first example of every rank but the first, where each holds its own."""

    def places(self, index: NDArray[np.int64]) -> list[slice]:
        """Where in a draw each share lies; by cuts, in one whose examples are in order."""
        if self.cuts:
            edges = [0, *np.searchsorted(index, self.cuts).tolist(), len(index)]
        else:
            each, more = divmod(len(index), self.count)
            edges = [each * part + min(part, more) for part in range(self.count + 1)]
        return [slice(start, stop) for start, stop in pairwise(edges)]

    def of(self, draw: Draw) -> Draw:
        """The draw in the order that it is divided in: nobody asks who was drawn first."""
        return replace(draw, _index=np.sort(draw._index)) if self.cuts else draw

    def to_tree(self) -> list[int]:
        """As a checkpoint holds it."""
        return [self.count, *self.cuts]

    @classmethod
    def from_tree(cls, tree: list[int]) -> Shares:
        """That of a checkpoint.

        >>> Shares.from_tree(Shares(2, (7,)).to_tree())
        Shares(count=2, cuts=(7,))
        """
        return cls(tree[0], tuple(tree[1:]))


@dataclass(frozen=True, eq=False)
class Shard:
    """The part of all examples that this rank holds; they are counted and named as those of all ranks together."""

    store: Store
    first: int
    size: int

    def __len__(self) -> int:
        return self.size

    @property
    def at_once(self) -> int:
        """As many as the store itself would give."""
        return self.store.at_once

    @property
    def held(self) -> range:
        """The numbers of those that are here."""
        return range(self.first, self.first + len(self.store))

    def take(self, index: NDArray[np.int64]) -> Batch:
        """The examples of these numbers, all of them held here."""
        if len(index) and not (index.min() >= self.held.start and index.max() < self.held.stop):
            raise DataError("an example was asked of a rank that does not hold it: nothing was released")
        return self.store.take(index - self.first)


def sharded(store: Store, shard: range | None, ranks: Ranks, *, divided: bool = True) -> tuple[Store, Shares]:
    """The examples of all ranks, as this one sees them, and how draws of them are divided, if they can be.

    >>> sharded(Shard(..., 0, 5), None, Ranks())[1]
    Shares(count=1, cuts=())
    """
    every = ranks.told((None if shard is None else (shard.start, shard.stop, shard.step), len(store)))
    with ranks.together():
        held = [place for place, _ in every]
        if not any(held):
            if len({size for _, size in every}) > 1:
                raise SettingError(
                    f"the ranks hold {', '.join(str(size) for _, size in every)} examples: give all to each, or say "
                    "with shard=range(start, stop) which of all examples a rank holds"
                )
            return store, Shares(ranks.world if divided else 1)
        if not divided:
            raise SettingError(
                "frozen parameters are cut over the ranks (fully_shard), which then look at the same examples "
                "together: let every rank hold all of them, and leave out shard"
            )
        if isinstance(store, Persons):
            raise SettingError(
                "groups and shard do not go together: the rows of a person on two ranks would count twice. Let every "
                "rank hold all rows (memory-mapped, or on a shared disk)"
            )
        ends = [0]
        for place, size in every:
            if place is None or place != (ends[-1], ends[-1] + size, 1):
                raise SettingError(
                    "the shards of the ranks must follow one another, in the order of the ranks, without gap or "
                    f"overlap, each as long as what is given: rank {len(ends) - 1} has {size} examples and "
                    f"shard={None if place is None else range(*place[:2])}, not {range(ends[-1], ends[-1] + size)}. An "
                    "example on two ranks would count twice"
                )
            ends.append(place[1])
    return Shard(store, ends[ranks.rank], ends[-1]), Shares(ranks.world, tuple(ends[1:-1]))


def everyones(examples: Store, index: NDArray[np.int64], ranks: Ranks) -> list[Tensor]:
    """The tensors of these examples, in order, whoever holds them."""
    if not isinstance(examples, Shard):
        return leaves(examples.take(index))
    here = index[(index >= examples.held.start) & (index < examples.held.stop)]
    return [torch.cat(parts) for parts in zip(*ranks.told(leaves(examples.take(here))), strict=True)]
