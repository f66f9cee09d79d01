"""Picking by several tables at once, as the last token of each example is picked: `x[torch.arange(n), lengths - 1]`."""

from __future__ import annotations

import torch
from torch import Tensor

from reticent.gradients.following.follower import Whose
from reticent.gradients.following.places import NotFollowed, Place, alike

_WHOLE = slice(None)


def by_tables(whose: Whose, tensor: Tensor, items: list[object], place: Place) -> Place:
    """Where the examples are in what tables of indices pick: each must pick its own, or all are picked whole."""
    steps = _spelled_out(tensor, items)
    tables = [item for item in steps if isinstance(item, Tensor)]
    axes = [axis for axis, item in enumerate(item for item in steps if item is not None) if isinstance(item, Tensor)]
    shape = torch.broadcast_shapes(*(table.shape for table in tables))  # type: ignore[no-untyped-call]
    places = [axis for axis, item in enumerate(steps) if isinstance(item, Tensor)]
    together = places[-1] - places[0] + 1 == len(places)  # then their axes stay there, else they come first
    start = places[0] if together else 0
    if place.axis in axes:
        counting = axes.index(place.axis)
        axis = _each_its_own(whose, tables[counting], place, len(shape))
        for table in tables[:counting] + tables[counting + 1 :]:
            _refuse_others(whose, table, axis, len(shape))
        return Place(start + axis, bound=place.bound)
    if any(whose.touched(table) for table in tables):
        raise NotFollowed("entries are picked by values of the examples")
    before = _place_of(steps, place.axis)
    if steps[before] != _WHOLE:
        raise NotFollowed("some of the examples are cut off")
    tables_before = sum(at < before for at in places)
    moved = len(shape) if not together or tables_before else 0
    return place.moved(before - tables_before + moved)


def _spelled_out(tensor: Tensor, items: list[object]) -> list[object]:
    """The index with a whole slice for each axis that it does not name."""
    if any(isinstance(item, int) for item in items):
        raise NotFollowed("examples are picked by tables and numbers")
    missing = tensor.dim() - sum(item is not None and item is not ... for item in items)
    at = next((i for i, item in enumerate(items) if item is ...), len(items))
    return [*items[:at], *[_WHOLE] * missing, *items[at + 1 :]]


def _place_of(steps: list[object], axis: int) -> int:
    """The step that goes along an axis of the tensor."""
    return [i for i, item in enumerate(steps) if item is not None][axis]


def _each_its_own(whose: Whose, table: Tensor, place: Place, axes: int) -> int:
    """The axis along which a table counts all examples, 0, 1, 2 and so on; it must be nobody's."""
    counted = [axis for axis, size in enumerate(table.shape) if size == whose.n]
    fits = place.simple() and bool(counted) and table.numel() == whose.n and not whose.touched(table)
    if not fits or not _in_order(table, whose.n):
        raise NotFollowed("examples are picked by several tables")
    return counted[0] + axes - table.dim()


def _in_order(table: Tensor, n: int) -> bool:
    return torch.equal(table.detach().flatten().cpu(), torch.arange(n))


def _refuse_others(whose: Whose, table: Tensor, axis: int, axes: int) -> None:
    """Refuse a table in which the examples are elsewhere, or are treated by their place in the batch."""
    own, at = whose.place(table), axis - axes + table.dim()
    if (own is None or not own.bound) and at >= 0 and not alike(table, at):
        raise NotFollowed("the place of an example in its batch decides what it picks")
    if own is not None and own.bound and not (own.simple() and own.axis + axes - table.dim() == axis):
        raise NotFollowed("examples are picked by the values of others")
