"""Recurrent layers and packed sequences: the order of a packed batch is known by its values, not by its looks."""

from __future__ import annotations

import torch
from torch import Tensor

from reticent.gradients.following.follower import Args, Kwargs, Whose, follows
from reticent.gradients.following.places import Answer, Each, NotFollowed, Packed, Place, Sizes

_HOMES = (torch,)


@follows("lstm", "gru", "rnn_tanh", "rnn_relu", homes=_HOMES)
def _recurrent(whose: Whose, args: Args, _kwargs: Kwargs, _result: object) -> Answer:
    """Takes [steps, examples, features] or packed rows; states are [layers, examples, features]."""
    packed = isinstance(args[3], list)
    data, first = args[0], args[2] if packed else args[1]
    assert isinstance(data, Tensor)
    where = whose.of(data)
    if where is None and all(state is None for state in whose.all_in(first)):
        return None
    if packed:
        if not isinstance(where, Packed):
            raise NotFollowed("a sequence was packed where it could not be seen")
        states = Place(1, order=where.order)
    else:
        batch_first = bool(args[8])
        if not isinstance(where, Place) or not where.simple() or where.axis != (not batch_first) or data.dim() != 3:
            raise NotFollowed("the examples are not where this layer has them")
        states = Place(1)
    for state in whose.all_in(first):
        if state is not None and not (isinstance(state, Place) and (not state.bound or state.same(states))):
            raise NotFollowed("the first states are not of these examples")
    return Each((where, *(states,) * (2 if isinstance(first, tuple | list) else 1)))


@follows("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell", homes=_HOMES)
def _cell(whose: Whose, args: Args, _kwargs: Kwargs, _result: object) -> Answer:
    found = [place for place in whose.all_in(args[:2]) if place is not None]
    if any(not isinstance(place, Place) or (place.bound and not place.same(Place(0))) for place in found):
        raise NotFollowed("the examples are not on the first axis")
    if any(where is not None for where in whose.all_in(args[2:])):
        raise NotFollowed("the weights belong to examples")
    return Place(0) if found else None


@follows("_pack_padded_sequence", homes=_HOMES)
def _pack(whose: Whose, args: Args, _kwargs: Kwargs, _result: object) -> Answer:
    data, lengths, batch_first = args
    place, own = whose.place(data), whose.place(lengths)
    if place is None and own is None:
        return None
    if place is None or place.axis != (not batch_first) or place.before * place.after > 1:
        raise NotFollowed("the examples are not where they are packed")
    if own is not None and not own.same(place.moved(0)):
        raise NotFollowed("the lengths are not of these examples")
    return Each((Packed(place.order), Sizes()))


@follows("_pad_packed_sequence", homes=_HOMES)
def _unpack(whose: Whose, args: Args, _kwargs: Kwargs, _result: object) -> Answer:
    data, sizes, batch_first = args[:3]
    assert isinstance(data, Tensor)
    assert isinstance(sizes, Tensor)
    where = whose.of(data)
    if where is None and whose.of(sizes) is None:
        return None
    if not isinstance(where, Packed) or not isinstance(whose.of(sizes), Sizes):
        raise NotFollowed("a sequence was packed where it could not be seen")
    return Each((Place(0 if batch_first else 1, order=where.order), Place(0, order=where.order)))
