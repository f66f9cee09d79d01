"""Layers: the examples are where torch expects them, mostly on the first axis, and come out there."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from reticent.gradients.following.follower import Args, Follow, Kwargs, Whose, first, follows, given
from reticent.gradients.following.places import Answer, Each, NotFollowed, Place
from reticent.gradients.following.shapes import numbers


def _on_first(dimensions: int | None) -> Follow:
    """A layer that takes examples on the first axis, and weights that are nobody's."""

    def follow(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
        tensor = first(args, kwargs)
        place = whose.place(tensor)
        if any(where is not None for where in whose.all_in([*args[1:], *kwargs.values()]) if not _same(where, place)):
            raise NotFollowed("the weights belong to examples")
        if place is not None and place.axis != 0:
            raise NotFollowed("the examples are not on the first axis")
        if place is not None and dimensions is not None and tensor.dim() != dimensions + 2:
            raise NotFollowed("the input has no axis of examples")
        return place

    return follow


def _same(where: object, place: Place | None) -> bool:
    return isinstance(where, Place) and not where.bound and place is not None


for _dimensions in (1, 2, 3):
    follows(f"conv{_dimensions}d", f"conv_transpose{_dimensions}d", homes=(functional,))(_on_first(_dimensions))
follows("group_norm", "instance_norm", "local_response_norm", homes=(functional,))(_on_first(None))
follows("dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout", homes=(functional,))(_on_first(None))
follows("interpolate", "upsample", "unfold", "fold", homes=(functional,))(_on_first(None))


@follows("batch_norm", homes=(functional,))
def _batch_norm(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    place = whose.place(first(args, kwargs))
    if place is not None and (given(args, kwargs, 5, "training", False) or place.axis == 1):
        raise NotFollowed("statistics are taken over the batch")
    return place


@follows("layer_norm", "rms_norm", homes=(functional,))
def _layer_norm(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    tensor = first(args, kwargs)
    place, axes = whose.place(tensor), len(numbers(given(args, kwargs, 1, "normalized_shape")))
    if place is not None and place.axis >= tensor.dim() - axes:
        raise NotFollowed("it normalises over examples")
    return place


@follows("embedding", homes=(functional,))
def _embedding(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    index, table = given(args, kwargs, 0, "input"), given(args, kwargs, 1, "weight")
    if whose.place(table) is not None:
        raise NotFollowed("the table belongs to examples")
    return whose.place(index)


@follows("embedding_bag", homes=(functional,))
def _embedding_bag(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    index, weights = given(args, kwargs, 0, "input"), given(args, kwargs, 8, "per_sample_weights")
    place, own = whose.place(index), whose.place(weights)
    if place is None:
        return None
    offsets, last = given(args, kwargs, 2, "offsets"), given(args, kwargs, 9, "include_last_offset", False)
    assert isinstance(index, Tensor)
    if place.axis != 0 or not (own is None or own.same(place)):
        raise NotFollowed("only bags of one length are followed")
    if not isinstance(offsets, Tensor):
        return place
    bags = len(offsets) - bool(last)
    each = len(index) // max(bags, 1)
    regular = torch.arange(len(offsets), dtype=offsets.dtype) * each
    if whose.touched(offsets) or bags * each != len(index) or not torch.equal(offsets.detach().cpu(), regular):
        raise NotFollowed("only bags of one length are followed")
    if not each or place.after % each:
        raise NotFollowed("a bag holds several examples")
    return replace(place, after=place.after // each)


@follows("multi_head_attention_forward", homes=(functional,))
def _attention(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    """[positions, examples, features]; the weights come with the examples first."""
    sides = [whose.place(side) for side in args[:3]]
    if all(side is None for side in sides):
        return None
    if any(side is None or side.axis != 1 or not side.simple() for side in sides):
        raise NotFollowed("the examples are not on the second axis")
    if any(where is not None for where in whose.all_in(args[5:])):
        raise NotFollowed("the weights belong to examples")
    padding, mask = whose.place(kwargs.get("key_padding_mask")), whose.place(kwargs.get("attn_mask"))
    if padding is not None and not padding.same(Place(0)):
        raise NotFollowed("the padding mask is not for each example")
    if mask is not None and mask.bound and not mask.same(Place(0, after=int(str(args[4])))):
        raise NotFollowed("the attention mask is not for each example")
    return Each((Place(1), Place(0) if kwargs.get("need_weights", True) else None))


@follows("grid_sample", "affine_grid", homes=(functional,))
def _grid(whose: Whose, args: Args, _kwargs: Kwargs, _result: object) -> Answer:
    places = [place for place in map(whose.place, args) if place is not None]
    if any(not place.same(Place(0)) for place in places):
        raise NotFollowed("the examples are not on the first axis")
    return places[0] if places else None
