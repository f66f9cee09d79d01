"""Routes: the rows of all examples put in the order of the experts they go to, until they are put back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from reticent.gradients.following.places import Place


class RoutePart(Enum):
    """What a tensor is to a routing: good for nothing but what leads to rows that are back in their places."""

    ROWS = "rows of examples, in the order of their experts"
    EXPERTS = "the expert of each row"
    ORDER = "the row that is routed to each place"
    TOKENS = "the token that is routed to each place, where each of them has several rows"
    BLANK = "room for the way back"
    BACK = "the place that each row was routed to"
    COUNTS = "how many rows each expert has"
    ENDS = "where the rows of each expert end"


class Rooms(NamedTuple):
    """Rows that are apart by expert and then by example, with equal room for all examples at an expert."""

    slots: Tensor
    """Where each routed row goes."""
    sizes: list[int]
    """The most rows that an example has, for each expert up to the last that has any."""


@dataclass(frozen=True, eq=False)
class Routing:
    """One sorting of rows by their experts: which row, of which example, came where."""

    n: int
    """How many examples there are."""
    place: Place
    """Where the rows were: on the first axis, those of one example one after the other."""
    order: Tensor
    """The row that came to each place."""
    experts: Tensor
    """The expert of the row at each place: chosen by that row, and never by how many others there are."""

    def owners(self) -> Tensor:
        """The example of the row at each place."""
        return self.order // self.place.after

    @cached_property
    def rooms(self) -> Rooms:
        """Where the rows go if those of each example and expert are to lie together."""
        owners, last = self.owners(), int(self.experts[-1])
        pair = self.experts * self.n + owners
        counts = torch.bincount(pair, minlength=(last + 1) * self.n)
        sizes = counts.view(last + 1, self.n).amax(1)
        grouped = pair.argsort(stable=True)
        rank = torch.empty_like(pair)
        rank[grouped] = torch.arange(len(pair), device=pair.device) - (counts.cumsum(0) - counts)[pair[grouped]]
        starts = (sizes * self.n).cumsum(0) - sizes * self.n
        return Rooms(starts[self.experts] + owners * sizes[self.experts] + rank, sizes.tolist())


@dataclass(frozen=True, eq=False)
class Routed:
    """Something of all examples at once that belongs to a routing."""

    routing: Routing
    part: RoutePart
    number: int = 1
    """How many rows a token has, or how many experts there are."""
