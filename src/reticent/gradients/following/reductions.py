"""Functions that go along axes, adding up or normalising: along any axis but that of the examples."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from reticent.gradients.following.elementwise import together
from reticent.gradients.following.follower import HOMES, Args, Follow, Kwargs, Whose, first, follows, given
from reticent.gradients.following.places import Answer, NotFollowed, Place
from reticent.gradients.following.shapes import numbers, spread

_ACROSS = "it goes across examples"


def _refuse_across(place: Place, tensor: Tensor, axes: object) -> list[int]:
    """Give the axes counted from the front, of which none may hold examples."""
    if axes is None or isinstance(axes, bool) or axes == []:
        raise NotFollowed(_ACROSS)
    found = [axis % tensor.dim() for axis in numbers(axes)]
    if place.axis in found or not found:
        raise NotFollowed(_ACROSS)
    return found


def _goes_across(place: Place, tensor: Tensor, axes: object) -> bool:
    return axes is None or isinstance(axes, bool) or place.axis in [axis % tensor.dim() for axis in numbers(axes)]


def _reducing(position: int, alone: str | None = None) -> Follow:
    """A function that takes axes away, unless it is told to keep them; `position` is where they are given.

    `alone` names what gives the same of a row, where that may be asked of each example.
    """

    def follow(whose: Whose, args: Args, kwargs: Kwargs, result: object) -> Answer:
        tensor = first(args, kwargs)
        axes = given(args, kwargs, position, "dim", kwargs.get("axis"))
        if isinstance(axes, Tensor) or "other" in kwargs:  # max and min also compare two tensors
            return together(whose, args, kwargs, result)
        place = whose.place(tensor)
        if place is None or (not place.bound and _goes_across(place, tensor, axes)):
            return None  # many times the same, added up, is still nobody's
        if alone is not None and axes is None and place.order is None and tensor.numel():
            raise NotFollowed(_ACROSS, own=getattr(_rows(tensor, place, whose.n), alone)(1))
        gone = _refuse_across(place, tensor, axes)
        left = result[0] if isinstance(result, tuple) else result
        kept = isinstance(left, Tensor) and left.dim() == tensor.dim()
        return place if kept else place.moved(place.axis - sum(axis < place.axis for axis in gone))

    return follow


def _rows(tensor: Tensor, place: Place, n: int) -> Tensor:
    """What belongs to each example, as one row."""
    return tensor.detach().movedim(place.axis, 0).reshape(place.before, n, -1).transpose(0, 1).flatten(1)


_SECOND = """sum mean prod argmax argmin logsumexp std var std_mean var_mean median nanmedian mode nanmean nansum
count_nonzero aminmax"""
follows(*_SECOND.split())(_reducing(1))
for _name, _alone in {"max": "amax", "min": "amin", "amax": "amax", "amin": "amin", "any": "any", "all": "all"}.items():
    follows(_name)(_reducing(1, _alone))
follows("norm", "kthvalue")(_reducing(2))
follows("vector_norm", homes=(torch.linalg,))(_reducing(2))


def _along(position: int, *, default: object = None) -> Follow:
    """A function that goes along axes and keeps them."""

    def follow(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
        tensor = first(args, kwargs)
        place = whose.place(tensor)
        if place is not None:
            _refuse_across(place, tensor, given(args, kwargs, position, "dim", kwargs.get("dims", default)))
        return place

    return follow


follows("softmax", "log_softmax", "softmin", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", lone=True)(
    _along(1)
)
follows("roll", "diff", lone=True)(_along(2))
follows("topk", lone=True)(_along(2, default=-1))
follows("normalize", homes=(functional,), lone=True)(_along(2, default=1))
for _name in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]:
    follows(_name, homes=(torch.fft,), lone=True)(_along(2, default=-1))
for _name in ["fft2", "ifft2", "rfft2", "irfft2"]:
    follows(_name, homes=(torch.fft,), lone=True)(_along(2, default=(-2, -1)))
follows("fftn", "ifftn", "rfftn", "irfftn", homes=(torch.fft,), lone=True)(_along(2))
follows("glu", homes=(functional,), lone=True)(_along(1, default=-1))
follows("gumbel_softmax", homes=(functional,), lone=True)(_along(4, default=-1))


@follows("flip", lone=True)
def _flip(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    tensor = first(args, kwargs)
    place = whose.place(tensor)
    if place is not None:
        _refuse_across(place, tensor, spread(args, kwargs, "dims"))
    return place


def _last(count: int) -> Follow:
    """A function of the last axes only, whatever it makes of them."""

    def follow(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
        tensor = first(args, kwargs)
        place = whose.place(tensor)
        if place is not None and place.axis >= tensor.dim() - count:
            raise NotFollowed(_ACROSS)
        return place

    return follow


_POOLS = "max_pool{0}d avg_pool{0}d adaptive_avg_pool{0}d adaptive_max_pool{0}d max_pool{0}d_with_indices lp_pool{0}d"
for _dimensions in (1, 2, 3):
    for _name in _POOLS.format(_dimensions).split():
        if any(hasattr(home, _name) for home in HOMES):
            follows(_name, lone=True)(_last(_dimensions))
follows("tril", "triu", lone=True)(_last(2))
follows("pixel_shuffle", "pixel_unshuffle", lone=True)(_last(3))
follows("one_hot", lone=True)(_last(0))
follows("unfold", homes=(Tensor,), lone=True)(_along(1))
