"""Picking by index: along other axes the examples stay; along their own, all of them may be put in another order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, cast

from torch import Tensor

from reticent.gradients.following.elementwise import meeting
from reticent.gradients.following.follower import Args, Kwargs, Whose, first, follows, given
from reticent.gradients.following.places import Answer, Each, EveryExample, NotFollowed, Place, Sizes, alike, reordered
from reticent.gradients.following.routing import by_expert
from reticent.gradients.following.shapes import one_axis
from reticent.gradients.following.tables import by_tables

_WHOLE = slice(None)


@follows("__getitem__", homes=(Tensor,))
def _getitem(whose: Whose, args: Args, _kwargs: Kwargs, result: object) -> Answer:
    tensor, index = first(args, {}), args[1]
    where = whose.of(tensor)
    if isinstance(where, Sizes) and index == 0 and isinstance(result, Tensor) and int(result) == whose.n:
        return None  # every example has a first step, so that this number is known
    return _picked(whose, tensor, index)


class _Walk(NamedTuple):
    """Where in the result the axis of the examples is, and what picks along it."""

    axis: int | None
    picked: object


def _picked(whose: Whose, tensor: Tensor, index: object) -> Place | None:
    items = list(index) if isinstance(index, tuple) else [index]
    place = whose.place(tensor)
    tables = [item for item in items if isinstance(item, Tensor)]
    listed = [item for item in items if _numbered(item)]
    known = (Tensor, int, slice, type(None), type(...))
    if any((not isinstance(item, known) and not _numbered(item)) or isinstance(item, bool) for item in items):
        if place is None and all(where is None for where in whose.all_in(index)):
            return None
        raise NotFollowed("an index that is not followed")
    if place is None:
        return _looked_up(whose, items, tables)
    if any(item.dtype.is_floating_point or item.element_size() == 1 for item in tables):
        raise NotFollowed("examples are picked by a mask")
    if len(tables) > 1 and not listed:
        return by_tables(whose, tensor, items, place)
    if len(tables) + len(listed) > 1:
        raise NotFollowed("examples are picked by several tables")
    axis, picked = _walk(tensor, items, place.axis)
    if axis is None:
        raise NotFollowed("a single example is picked")
    if isinstance(picked, Tensor):
        return _sorted(whose, place, picked).moved(axis)
    if picked != _WHOLE and not _everything(picked, tensor.shape[place.axis]):
        raise NotFollowed("some of the examples are cut off")
    if any(whose.of(table) is not None for table in tables):
        raise NotFollowed("entries are picked by values of the examples")
    return place.moved(axis)


def _numbered(item: object) -> bool:
    """Whether an index is a list of numbers, which nobody owns."""
    return isinstance(item, list) and all(isinstance(one, int) and not isinstance(one, bool) for one in item)


def _walk(tensor: Tensor, items: list[object], axis: int) -> _Walk:
    """Go along the axes of the tensor and of the result side by side."""
    missing = tensor.dim() - sum(item is not None and item is not ... for item in items)
    here = there = 0
    for item in items if ... in [i for i in items if not isinstance(i, Tensor)] else [*items, ...]:
        if item is None:
            there += 1
        elif item is ...:
            if here <= axis < here + missing:
                return _Walk(there + axis - here, _WHOLE)
            here, there = here + missing, there + missing
        else:
            if here == axis:
                return _Walk(None if isinstance(item, int) else there, item)
            here += 1
            there += item.dim() if isinstance(item, Tensor) else not isinstance(item, int)  # a list stays one axis
    raise NotFollowed("an index with too many entries")


def _everything(picked: object, size: int) -> bool:
    return isinstance(picked, slice) and picked.indices(size) == (0, size, 1)


def _looked_up(whose: Whose, items: list[object], tables: list[Tensor]) -> Place | None:
    """Entries of what nobody owns, looked up by each example."""
    places = [whose.of(table) for table in tables]
    if all(place is None for place in places):
        return None
    alone = len(tables) == 1 and isinstance(items[0], Tensor) and tables[0].element_size() > 1
    alone = alone and not any(_numbered(item) for item in items)
    if alone and isinstance(places[0], Place):
        return places[0]
    raise NotFollowed("entries are picked by values of the examples")


def _sorted(whose: Whose, place: Place, index: Tensor) -> Place:
    """All examples in another order, which is read from the index itself."""
    if place.before * place.after > 1 or not isinstance(whose.of(index), EveryExample | None):
        raise NotFollowed("examples are picked by an index")
    return replace(place, order=reordered(place.order, index, whose.n))


@follows("index_select")
def _index_select(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    tensor = first(args, kwargs)
    axis, index = one_axis(given(args, kwargs, 1, "dim"), tensor.dim()), given(args, kwargs, 2, "index")
    assert isinstance(index, Tensor)
    place = whose.place(tensor)
    if place is None and isinstance(whose.of(index), EveryExample) and tensor.shape[axis] == whose.n:
        if not alike(tensor, axis):
            raise NotFollowed("sorted examples are treated by their rank")
        place = Place(axis, bound=False)
    if place is not None and axis == place.axis:
        return _sorted(whose, place, index)
    where = whose.of(index)
    if place is None and isinstance(where, Place):
        return where.moved(axis)  # entries of what nobody owns, looked up by each example
    if where is not None:
        raise NotFollowed("entries are picked by values of the examples")
    return place


@follows("__setitem__", homes=(Tensor,))
def _setitem(whose: Whose, args: Args, _kwargs: Kwargs, _result: object) -> Answer:
    """What is written must belong where it goes."""
    tensor, index, value = first(args, {}), args[1], args[2]
    place = whose.place(tensor)
    goal = _picked(whose, tensor, index)
    own = whose.place(value)
    if own is not None and own.bound:
        if goal is None or not goal.bound or not isinstance(value, Tensor):
            raise NotFollowed("a tensor is filled in place with what belongs to the examples")
        shape = _shape_of(tensor, index)
        if len(shape) < value.dim() or not goal.same(own.moved(own.axis + len(shape) - value.dim())):
            raise NotFollowed("examples are written to the places of others")
    if place is None and goal is not None:
        raise NotFollowed("a tensor is filled in place by values of the examples")
    return None


def _shape_of(tensor: Tensor, index: object) -> list[int]:
    pick = cast(Callable[[Tensor, object], Tensor], Tensor.__getitem__)
    return list(pick(tensor.detach(), index).shape)


@follows("gather", "scatter", "scatter_add", "take_along_dim")
def _gather(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    """Within an example, by indices of its own; only an order may be inverted across examples."""
    tensor = first(args, kwargs)
    indices_first = len(args) > 1 and isinstance(args[1], Tensor)  # as take_along_dim has them
    axis = given(args, kwargs, 2 if indices_first else 1, "dim")
    others = [value for value in (*args[1:], *kwargs.values()) if isinstance(value, Tensor)]
    if isinstance(whose.of(tensor), EveryExample):
        return EveryExample()
    if any(other.dim() != tensor.dim() for other in others) or axis is None:
        raise NotFollowed("entries are picked in a way that is not followed")
    place = meeting(whose, [tensor, *others])
    if place is None:
        return None
    if one_axis(axis, tensor.dim()) == place.axis:
        raise NotFollowed("entries of other examples are picked")
    if any(value.shape[place.axis] != place.size(whose.n) for value in (tensor, *others)):
        raise NotFollowed("some of the examples are cut off")
    return place


@follows("sort", "argsort")
def _sort(whose: Whose, args: Args, kwargs: Kwargs, result: object) -> Answer:
    """Along another axis nothing moves; one number for each example may put them all in order."""
    tensor = first(args, kwargs)
    where = whose.of(tensor)
    if isinstance(where, EveryExample):
        return where
    place = whose.place(tensor)
    positional = [value for value in args[1:] if isinstance(value, int) and not isinstance(value, bool)]
    axis = one_axis(positional[0] if positional else kwargs.get("dim", -1), tensor.dim())
    if place is None or axis != place.axis or not place.bound:
        return None if place is not None and axis == place.axis else place
    if tensor.dim() == 1 and place.after > 1 and isinstance(result, tuple):
        return by_expert(whose, place, args, kwargs, result)
    if tensor.dim() > 1 or not place.before == place.after == 1:
        raise NotFollowed("examples are sorted, each column apart")
    if isinstance(result, Tensor):
        return EveryExample()
    assert isinstance(result, tuple)
    return Each((replace(place, order=reordered(place.order, result[1], whose.n)), EveryExample()))
