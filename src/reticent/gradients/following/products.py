"""Products: examples may be rows, columns or a stack of matrices, but nothing is added up over them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from reticent.gradients.following.elementwise import meeting
from reticent.gradients.following.follower import Args, Kwargs, Whose, first, follows, given
from reticent.gradients.following.places import Answer, NotFollowed, Place, joined

_ADDED_UP = "it adds up over examples"


def _tensors(*values: object) -> list[Tensor]:
    found = [value for value in values if isinstance(value, Tensor)]
    if len(found) != len(values):
        raise NotFollowed("its arguments are no tensors")
    return found


def product(whose: Whose, left: Tensor, right: Tensor) -> Place | None:
    """Where the examples are in a matrix product."""
    ours, theirs = whose.place(left), whose.place(right)
    if ours is None and theirs is None:
        return None
    axes = max(left.dim(), right.dim(), 2)
    # As torch does: a vector on the left is a row, on the right a column, and that axis is gone afterwards.
    row, column = left.dim() == 1, right.dim() == 1
    found: Place | None = None
    if ours is not None:
        from_end = -1 if row else ours.axis - left.dim()
        found = ours.moved(axes + from_end)
        if from_end == -1:
            raise NotFollowed(_ADDED_UP)
    if theirs is not None:
        from_end = -2 if column else theirs.axis - right.dim()
        if from_end == -2:
            raise NotFollowed(_ADDED_UP)
        found = joined(found, theirs.moved(axes + from_end))
    assert found is not None
    in_matrix = found.axis >= axes - 2
    if in_matrix and ours is not None and theirs is not None:
        raise NotFollowed("every example meets every other")
    if row and found.axis == axes - 1:
        return found.moved(found.axis - 1)
    return found


@follows("matmul", "mm", "bmm", "mv", "__matmul__")
def _matmul(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    left = first(args, kwargs)
    right = given(args, kwargs, 1, "other", kwargs.get("mat2", kwargs.get("vec")))
    return product(whose, *_tensors(left, right))


@follows("__rmatmul__", homes=(Tensor,))
def _rmatmul(whose: Whose, args: Args, _kwargs: Kwargs, _result: object) -> Answer:
    return product(whose, *_tensors(args[1], args[0]))


@follows("addmm", "baddbmm", "addmv")
def _addmm(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    names = (("input",), ("mat1", "batch1", "mat"), ("mat2", "batch2", "vec"))
    named = [next((kwargs[name] for name in each if name in kwargs), None) for each in names]
    added, left, right = _tensors(*(given(args, {}, i, "", named[i]) for i in range(3)))
    place, own = product(whose, left, right), whose.place(added)
    axes = left.dim() - (right.dim() == 1)
    return place if own is None else joined(place, own.moved(own.axis + axes - added.dim()))


@follows("linear", homes=(functional,))
def _linear(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    tensor = first(args, kwargs)
    place = whose.place(tensor)
    others = [given(args, kwargs, 1, "weight"), given(args, kwargs, 2, "bias")]
    if any(whose.place(other) is not None for other in others):
        raise NotFollowed("the weights belong to examples")
    if place is not None and place.axis == tensor.dim() - 1:
        raise NotFollowed(_ADDED_UP)
    return place


@follows("bilinear", homes=(functional,))
def _bilinear(whose: Whose, args: Args, _kwargs: Kwargs, _result: object) -> Answer:
    left, right = _tensors(*args[:2])
    place = joined(whose.place(left), whose.place(right))
    if place is not None and place.axis == left.dim() - 1:
        raise NotFollowed(_ADDED_UP)
    return place


@follows("einsum", homes=(torch,))
def _einsum(whose: Whose, args: Args, _kwargs: Kwargs, _result: object) -> Answer:
    """The examples keep their letter."""
    equation, *operands = args
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = list(operands[0])
    tensors = _tensors(*operands)
    places = [whose.place(tensor) for tensor in tensors]
    if all(place is None for place in places):
        return None
    if not isinstance(equation, str) or "->" not in equation or "." in equation:
        raise NotFollowed("an einsum with '...' or without '->'")
    inputs, _, output = equation.replace(" ", "").partition("->")
    letters = inputs.split(",")
    owned = [(place, term[place.axis]) for place, term in zip(places, letters, strict=True) if place is not None]
    place, letter = next((one for one in owned if one[0].bound), owned[0])
    if letter not in output:
        raise NotFollowed(_ADDED_UP)
    for other, own in owned:
        if other.bound and (own != letter or not other.moved(0).same(place.moved(0))):
            raise NotFollowed("examples on different axes meet")
    return place.moved(output.index(letter))


@follows("scaled_dot_product_attention", homes=(functional,))
def _attention(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    sides = _tensors(*(given(args, kwargs, i, name) for i, name in enumerate(("query", "key", "value"))))
    mask = given(args, kwargs, 3, "attn_mask")
    place = meeting(whose, sides + ([mask] if isinstance(mask, Tensor) else []))
    if place is not None and place.axis >= max(side.dim() for side in sides) - 2:
        raise NotFollowed("examples attend to each other")
    return place
