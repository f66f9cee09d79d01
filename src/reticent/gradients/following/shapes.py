"""Functions that turn, cut and merge axes: the axis of the examples moves in a known way, or is no longer followed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from reticent.gradients.following.follower import FOLLOWED, Args, Kwargs, Whose, first, follows, getter, given
from reticent.gradients.following.places import Answer, NotFollowed, Place, joined


def numbers(value: object) -> list[int]:
    """One axis or several, as a list."""
    if isinstance(value, int):
        return [value]
    if isinstance(value, list | tuple) and all(isinstance(item, int) for item in value):
        return list(value)
    raise NotFollowed("its axes are not given as numbers")


def one_axis(value: object, dimensions: int) -> int:
    """An axis counted from the front."""
    if type(value) is int:
        return value % max(dimensions, 1)
    [axis] = numbers(value)
    return axis % max(dimensions, 1)


def spread(args: Args, kwargs: Kwargs, name: str) -> object:
    """Axes or sizes given one by one or as one list."""
    return (args[1:] if len(args) > 2 else args[1]) if len(args) > 1 else kwargs.get(name)


def _turned(place: Place | None, order: Sequence[int]) -> Place | None:
    return None if place is None else place.moved(list(order).index(place.axis))


@follows("transpose", "swapaxes", "swapdims", lone=True)
def _transpose(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    tensor = first(args, kwargs)
    place, dimensions = whose.place(tensor), tensor.dim()
    one = one_axis(given(args, kwargs, 1, "dim0", kwargs.get("axis0")), dimensions)
    other = one_axis(given(args, kwargs, 2, "dim1", kwargs.get("axis1")), dimensions)
    if place is None or place.axis not in (one, other):
        return place
    return place.moved(other if place.axis == one else one)


@follows("t", "adjoint", lone=True)
def _last_two(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    tensor = first(args, kwargs)
    order = list(range(tensor.dim()))
    if len(order) > 1:
        order[-2:] = order[-1], order[-2]
    return _turned(whose.place(tensor), order)


def _all_turned(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    tensor = first(args, kwargs)
    return _turned(whose.place(tensor), range(tensor.dim())[::-1])


def _unchanged(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    return whose.of(first(args, kwargs))


FOLLOWED[getter("mT")] = FOLLOWED[getter("mH")] = _last_two
FOLLOWED[getter("T")] = FOLLOWED[getter("H")] = _all_turned
for _part in ("data", "real", "imag"):
    FOLLOWED[getter(_part)] = _unchanged


@follows("permute", lone=True)
def _permute(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    tensor = first(args, kwargs)
    return _turned(whose.place(tensor), [axis % tensor.dim() for axis in numbers(spread(args, kwargs, "dims"))])


@follows("movedim", "moveaxis", lone=True)
def _movedim(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    tensor = first(args, kwargs)
    sources, goals = (
        [axis % tensor.dim() for axis in numbers(given(args, kwargs, position, name))]
        for position, name in ((1, "source"), (2, "destination"))
    )
    rest = iter(axis for axis in range(tensor.dim()) if axis not in sources)
    order = [sources[goals.index(axis)] if axis in goals else next(rest) for axis in range(tensor.dim())]
    return _turned(whose.place(tensor), order)


@follows("unsqueeze", lone=True)
def _unsqueeze(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    tensor = first(args, kwargs)
    place, axis = whose.place(tensor), one_axis(given(args, kwargs, 1, "dim"), tensor.dim() + 1)
    return None if place is None else place.moved(place.axis + (axis <= place.axis))


@follows("squeeze", lone=True)
def _squeeze(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    tensor = first(args, kwargs)
    place, named = whose.place(tensor), given(args, kwargs, 1, "dim")
    if place is None:
        return None
    axes = range(tensor.dim()) if named is None else [axis % tensor.dim() for axis in numbers(named)]
    gone = [axis for axis in axes if tensor.shape[axis] == 1]
    if place.axis in gone:
        raise NotFollowed("the axis of a single example is taken away")
    return place.moved(place.axis - sum(axis < place.axis for axis in gone))


@follows("reshape", "view", "flatten", "unflatten", "ravel", "view_as", "reshape_as")
def _reshape(whose: Whose, args: Args, kwargs: Kwargs, result: object) -> Answer:
    """Keep the order of the entries: the examples stay together if their axis is a factor of one new axis."""
    tensor = first(args, kwargs)
    place = whose.place(tensor)
    if place is None:
        return None
    assert isinstance(result, Tensor)
    if result.dtype != tensor.dtype or result.numel() != tensor.numel() or not result.numel():
        raise NotFollowed("another type or no entries at all")
    outside = math.prod(tensor.shape[: place.axis]) * place.before
    return _factored(place, result.shape, outside, whose.n)


def _factored(place: Place, shape: Sequence[int], outside: int, n: int) -> Place:
    """Find the axis of which the examples are a factor; `outside` counts what changes more slowly than they do."""
    fitting, passed = [], 1
    for axis, size in enumerate(shape):
        if outside % passed == 0 and size % (outside // passed * n) == 0:
            before = outside // passed
            fitting.append(Place(axis, before, size // (before * n), place.order, place.bound))
        passed *= size
    if not fitting:
        raise NotFollowed("the axis of the examples is cut or merged in a way that is not followed")
    return min(fitting, key=lambda found: found.before * found.after)  # several only for a single example


@follows("expand", "broadcast_to", "expand_as", "repeat", "tile")
def _expand(whose: Whose, args: Args, kwargs: Kwargs, result: object) -> Answer:
    """More of the same; what nobody owns may become a copy for each example."""
    tensor = first(args, kwargs)
    place, like = whose.place(tensor), given(args, kwargs, 1, "other")
    shape = _asked(tensor, args, kwargs) if result is None else list(getattr(result, "shape", ()))
    added = len(shape) - tensor.dim()
    if place is not None:
        axis = place.axis + added
        times = shape[axis] // tensor.shape[place.axis]
        return Place(axis, place.before * times, place.after, place.order, place.bound)
    if isinstance(like, Tensor) and (model := whose.place(like)) is not None and model.simple():
        return Place(model.axis, bound=False)
    for axis, size in enumerate(shape):
        if size == whose.n and (axis < added or tensor.shape[axis - added] == 1):
            return Place(axis, bound=False)
    return None


def _asked(tensor: Tensor, args: Args, kwargs: Kwargs) -> list[int]:
    """The shape that will come of it: -1 keeps a size."""
    like = given(args, kwargs, 1, "other")
    if isinstance(like, Tensor):
        return list(like.shape)
    sizes = numbers(spread(args, kwargs, "size"))
    added = len(sizes) - tensor.dim()
    return [tensor.shape[axis - added] if size == -1 else size for axis, size in enumerate(sizes)]


@follows("repeat_interleave")
def _repeat_interleave(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    tensor = first(args, kwargs)
    place = whose.place(tensor)
    times, axis = given(args, kwargs, 1, "repeats"), given(args, kwargs, 2, "dim")
    if place is None and not isinstance(times, Tensor):
        return None
    if place is None or not isinstance(times, int) or axis is None:
        raise NotFollowed("examples are repeated by numbers that are not known beforehand")
    if one_axis(axis, tensor.dim()) != place.axis:
        return place
    return Place(place.axis, place.before, place.after * times, place.order, place.bound)


@follows("chunk", "split", "tensor_split", "narrow", "split_with_sizes", lone=True)
def _parts(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    tensor = first(args, kwargs)
    place = whose.place(tensor)
    narrow = len(args) > 3 or "length" in kwargs  # narrow(axis, start, length); the others take the axis last
    axis = given(args, kwargs, 1, "dim") if narrow else given(args, kwargs, 2, "dim", 0)
    if place is not None and one_axis(axis, tensor.dim()) == place.axis:
        raise NotFollowed("the examples are cut into parts")
    return place


@follows("unbind", "select", lone=True)
def _unbind(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    tensor = first(args, kwargs)
    place, axis = whose.place(tensor), one_axis(given(args, kwargs, 1, "dim", 0), tensor.dim())
    if place is None:
        return None
    if axis == place.axis:
        raise NotFollowed("single examples are picked")
    return place.moved(place.axis - (axis < place.axis))


def _list(args: Args, kwargs: Kwargs) -> list[Tensor]:
    listed = given(args, kwargs, 0, "tensors")
    if not isinstance(listed, list | tuple) or not all(isinstance(item, Tensor) for item in listed) or "out" in kwargs:
        raise NotFollowed("its tensors are not given as a list")
    return list(listed)


@follows("cat", "concat", "concatenate", "stack")
def _cat(whose: Whose, args: Args, kwargs: Kwargs, result: object) -> Answer:
    listed = _list(args, kwargs)
    counted = [tensor for tensor in listed if tensor.numel() or tensor.dim() > 1]  # an empty one may have any shape
    axes = (counted or listed)[0].dim() if listed else 0
    stacked = isinstance(result, Tensor) and bool(listed) and result.dim() > axes
    axis = one_axis(given(args, kwargs, 1, "dim", 0), axes + stacked)
    place: Place | None = None
    for tensor in counted:
        place = joined(place, whose.place(tensor))
    if place is None or (axis == place.axis and not place.bound and not stacked):
        return None
    if stacked:
        return place.moved(place.axis + (axis <= place.axis))
    if axis == place.axis:
        raise NotFollowed("other rows are put beside the examples")
    return place


@follows("pad", lone=True)
def _pad(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    tensor, sides = first(args, kwargs), given(args, kwargs, 1, "pad")
    place = whose.place(tensor)
    widths = numbers(sides)  # before and after the last axis, then the one before it, and so on
    from_end = 2 * (tensor.dim() - 1 - place.axis) if place is not None else 0
    if place is not None and any(widths[from_end : from_end + 2]):
        raise NotFollowed("the axis of the examples is padded")
    return place
