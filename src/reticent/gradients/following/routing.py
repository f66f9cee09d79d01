"""Mixtures of experts: rows are sorted by their expert, go through it, and are put back; each stays its example's.

Only what is registered here may be done on the way. What a row meets must follow from the row alone: how many rows the
others have shows in orders, counts and ends, so that these are good for routing and for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from reticent.gradients.following.elementwise import SEVERAL, UNARY
from reticent.gradients.following.follower import (
    HOMES,
    NOT_PUT_BACK,
    ROUTED,
    Args,
    Follow,
    Kwargs,
    Whose,
    given,
    named,
)
from reticent.gradients.following.places import Answer, Each, NotFollowed, Place
from reticent.gradients.following.routes import Routed, RoutePart, Routing
from reticent.gradients.following.shapes import one_axis


def routes(*names: str, homes: Iterable[object] = HOMES) -> Callable[[Follow], Follow]:
    """Register what these functions do where one of their arguments belongs to a routing."""

    def register(follow: Follow) -> Follow:
        for name in names:
            ROUTED.update(dict.fromkeys(named(name, homes), follow))
        return follow

    return register


def by_expert(whose: Whose, place: Place, args: Args, kwargs: Kwargs, result: tuple[Tensor, Tensor]) -> Each:
    """Begin a routing where whole numbers, several for each example, are sorted."""
    experts, order = result
    turned = kwargs.get("descending") or any(isinstance(value, bool) and value for value in args[1:])
    if turned or experts.dim() != 1 or experts.dtype != torch.int64:
        raise NotFollowed("examples are sorted, each column apart")
    if place.before != 1 or place.order is not None:
        raise NotFollowed("the rows of an example do not lie together")
    routing = Routing(whose.n, place, order.detach(), experts.detach())
    return Each((Routed(routing, RoutePart.EXPERTS), Routed(routing, RoutePart.ORDER)))


def _part(whose: Whose, value: object, *parts: RoutePart) -> Routed:
    """What a tensor is to its routing, which must be one of these."""
    routed = whose.routed(value)
    if routed is None or routed.part not in parts:
        raise NotFollowed(NOT_PUT_BACK)
    return routed


def _refuse_tensors(values: Iterable[object]) -> None:
    if any(isinstance(value, Tensor | list | tuple) for value in values):
        raise NotFollowed(NOT_PUT_BACK)


@routes(*UNARY.split())
def _unary(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    _refuse_tensors([*args[1:], *kwargs.values()])
    return _part(whose, args[0] if args else None, RoutePart.ROWS)


@routes("float", "int", "long", "to")
def _of_type(whose: Whose, args: Args, kwargs: Kwargs, result: object) -> Answer:
    _refuse_tensors([*args[1:], *kwargs.values()])
    if not isinstance(result, Tensor) or result.element_size() < 4:  # in less room numbers are no longer the same
        raise NotFollowed(NOT_PUT_BACK)
    return _part(whose, args[0] if args else None, RoutePart.ROWS, RoutePart.EXPERTS, RoutePart.COUNTS, RoutePart.ENDS)


@routes(*SEVERAL.split())
def _together(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    """Rows meet the same rows, numbers, and what is the same for all rows: not something by their rank."""
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
    axes = max(tensor.dim() for tensor in tensors)
    rows = next(routed for routed in map(whose.routed, tensors) if routed is not None)
    for tensor in tensors:
        if whose.routed(tensor) is None:
            if whose.of(tensor) is not None or not _same_for_all_rows(tensor, axes):
                raise NotFollowed("rows routed to experts are treated by their rank")
        elif _part(whose, tensor, RoutePart.ROWS).routing is not rows.routing or tensor.dim() != axes:
            raise NotFollowed("rows of different routings meet")
    return rows


def _same_for_all_rows(tensor: Tensor, axes: int) -> bool:
    return tensor.dim() < axes or tensor.shape[0] == 1


@routes("__floordiv__", "floor_divide")
def _floor_divide(whose: Whose, args: Args, kwargs: Kwargs, result: object) -> Answer:
    """The token of each row, where the rows of a token lie together."""
    routed = whose.routed(args[0] if args else None)
    if routed is None or routed.part is RoutePart.ROWS:
        return _together(whose, args, kwargs, result)
    times = given(args, kwargs, 1, "other")
    if routed.part is not RoutePart.ORDER or type(times) is not int or times < 1:
        raise NotFollowed(NOT_PUT_BACK)
    return Routed(routed.routing, RoutePart.TOKENS, times)


@routes("__getitem__", homes=(Tensor,))
def _getitem(whose: Whose, args: Args, _kwargs: Kwargs, _result: object) -> Answer:
    """Send rows to their experts, or put them back."""
    tensor, index = args
    if whose.routed(tensor) is not None:
        rows, back = _part(whose, tensor, RoutePart.ROWS), _part(whose, index, RoutePart.BACK)
        if rows.routing is not back.routing:
            raise NotFollowed("rows are put back by the way of others")
        return rows.routing.place
    order, place = _part(whose, index, RoutePart.ORDER, RoutePart.TOKENS), whose.place(tensor)
    if place is None or not _of_the_same_rows(place, order):
        raise NotFollowed("what is routed is not what was sorted")
    return Routed(order.routing, RoutePart.ROWS)


def _of_the_same_rows(place: Place, order: Routed) -> bool:
    """Whether each token has as many rows as were sorted for it, in the same order."""
    return place.same(Place(0, after=order.routing.place.after // order.number)) and not (
        order.routing.place.after % order.number
    )


@routes("empty_like", "zeros_like")
def _room(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    if len(args) != 1 or kwargs:  # another type may be too small for the places
        raise NotFollowed(NOT_PUT_BACK)
    return Routed(_part(whose, args[0], RoutePart.ORDER).routing, RoutePart.BLANK)


@routes("__setitem__", homes=(Tensor,))
def _setitem(whose: Whose, args: Args, _kwargs: Kwargs, _result: object) -> Answer:
    """The way back, written as `back[order] = arange(rows)`."""
    room, index, counted = args
    assert isinstance(room, Tensor)
    back, order = _part(whose, room, RoutePart.BLANK), _part(whose, index, RoutePart.ORDER)
    if back.routing is not order.routing or not isinstance(counted, Tensor) or whose.of(counted) is not None:
        raise NotFollowed(NOT_PUT_BACK)
    if not torch.equal(counted, torch.arange(len(order.routing.order), dtype=counted.dtype, device=counted.device)):
        raise NotFollowed(NOT_PUT_BACK)
    whose.give(room, Routed(back.routing, RoutePart.BACK))
    return None


@routes("argsort")
def _argsort(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    """The same, by sorting the order."""
    if len(args) != 1 or kwargs:
        raise NotFollowed(NOT_PUT_BACK)
    return Routed(_part(whose, args[0], RoutePart.ORDER).routing, RoutePart.BACK)


@routes("histc")
def _histc(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    """Count the rows of each expert, one number a bin."""
    routed = _part(whose, args[0] if args else None, RoutePart.EXPERTS)
    bins, least, most = (given(args, kwargs, 1 + i, name) for i, name in enumerate(("bins", "min", "max")))
    if not isinstance(bins, int) or bins < 2 or least != 0 or most != bins - 1:
        raise NotFollowed("the experts are not counted one by one")
    return Routed(routed.routing, RoutePart.COUNTS, bins)


@routes("cumsum", homes=(torch, Tensor))
def _cumsum(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    routed = _part(whose, args[0] if args else None, RoutePart.COUNTS)
    if given(args, kwargs, 1, "dim") not in (0, -1) or kwargs.get("out") is not None:
        raise NotFollowed(NOT_PUT_BACK)
    return Routed(routed.routing, RoutePart.ENDS, routed.number)


@routes("chunk", "split")
def _parts(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    rows, tensor = _part(whose, args[0] if args else None, RoutePart.ROWS), args[0]
    assert isinstance(tensor, Tensor)
    if one_axis(given(args, kwargs, 2, "dim", 0), tensor.dim()) == 0:
        raise NotFollowed("rows routed to experts are cut into parts")
    return rows


@routes("unsqueeze")
def _unsqueeze(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    rows, tensor = _part(whose, args[0] if args else None, RoutePart.ROWS), args[0]
    assert isinstance(tensor, Tensor)
    if one_axis(given(args, kwargs, 1, "dim"), tensor.dim() + 1) == 0:
        raise NotFollowed(NOT_PUT_BACK)
    return rows


@routes("_grouped_mm", homes=(torch,))
def _grouped_mm(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    """Each row times the matrix of its own expert: where the rows of an expert end must follow from their experts."""
    rows, ends = _part(whose, args[0] if args else None, RoutePart.ROWS), kwargs.get("offs")
    routed, matrices = _part(whose, ends, RoutePart.ENDS), args[1] if len(args) == 2 else None
    others = [value for name, value in kwargs.items() if name != "offs"]
    if routed.routing is not rows.routing or any(value is not None for value in others):
        raise NotFollowed(NOT_PUT_BACK)
    if not isinstance(matrices, Tensor) or whose.of(matrices) is not None or len(matrices) != routed.number:
        raise NotFollowed("the matrices are not those of the experts")
    assert isinstance(ends, Tensor)
    if not _ends(rows.routing.experts, ends):
        raise NotFollowed("not every row goes to its expert")
    return rows


def _ends(experts: Tensor, ends: Tensor) -> bool:
    """Whether the rows of each expert end there: not so if one of them has a number that no expert has."""
    numbers = torch.arange(len(ends), dtype=experts.dtype, device=experts.device)
    true = torch.searchsorted(experts, numbers, right=True)
    return bool(experts[0] >= 0) and int(true[-1]) == len(experts) and torch.equal(true, ends.to(true.dtype))
