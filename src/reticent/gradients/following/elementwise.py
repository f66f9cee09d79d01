"""Functions that work element by element: examples stay where they are, and must be in one place to meet."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from reticent.gradients.following.follower import Args, Kwargs, Whose, first, follows, given
from reticent.gradients.following.places import Answer, EveryExample, NotFollowed, Place, joined

UNARY = """abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh
bitwise_not ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac gelu hardshrink hardsigmoid
hardswish hardtanh i0 isfinite isinf isnan isneginf isposinf leaky_relu lgamma log log10 log1p log2 logical_not logit
logsigmoid mish nan_to_num neg negative positive rad2deg reciprocal relu relu6 round rrelu rsqrt selu celu elu sgn
sigmoid sign signbit silu sin sinc sinh softplus softshrink softsign sqrt square tan tanh tanhshrink threshold trunc
dropout alpha_dropout bernoulli detach clone contiguous requires_grad_ retain_grad float double half bfloat16 long int
short bool cpu cuda expit log_ndtr ndtr entr erfcx __invert__ __pos__ __neg__ zero_ fill_ uniform_ normal_
exponential_
"""
SEVERAL = """add addcdiv addcmul atan2 bitwise_and bitwise_or bitwise_xor clamp clamp_min clamp_max clip copysign div
divide eq float_power floor_divide fmax fmin fmod ge greater greater_equal gt heaviside hypot isclose ldexp le less
less_equal lerp logaddexp logaddexp2 logical_and logical_or logical_xor lt masked_fill maximum minimum mul multiply ne
not_equal pow remainder rsub sub subtract true_divide xlogy copy_ masked_fill __and__ __or__ __xor__ __eq__ __ne__
__radd__ __rsub__ __rmul__ __rdiv__ __rtruediv__ __rpow__ __rfloordiv__ __rmod__ __floordiv__ __mod__ __truediv__
__rand__ __ror__ __rxor__ __iand__ __ior__ __ixor__ __add__ __sub__ __mul__ __pow__ __ipow__ __lt__ __le__ __gt__ __ge__
nextafter"""


@follows(*UNARY.split(), lone=True)
def _unary(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    return whose.of(first(args, kwargs))


@follows("to", "type_as", "type")  # what it is made alike may belong to anybody
def _of_type(whose: Whose, args: Args, kwargs: Kwargs, result: object) -> Answer:
    if isinstance(result, str):  # x.type() without a type only tells it
        return None
    return whose.of(first(args, kwargs))


@follows(*SEVERAL.split())
def together(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    """Broadcast as torch does: the last axes meet."""
    given = (*args, *kwargs.values()) if kwargs else args
    tensors = [value for value in given if isinstance(value, Tensor)]
    if len(tensors) == 1:
        return whose.of(tensors[0])
    return meeting(whose, tensors)


def meeting(whose: Whose, tensors: list[Tensor]) -> Place | None:
    """The place of what tensors give together, element by element."""
    places = [whose.place(tensor) for tensor in tensors]
    sizes = [tensor.dim() for tensor in tensors]
    axes = max(sizes)
    found: Place | None = None
    for size, place in zip(sizes, places, strict=True):
        if place is not None:
            found = joined(found, place if size == axes else place.moved(place.axis + axes - size))
    if found is not None and found.order is not None:
        _refuse_ranks(tensors, places, found.axis - axes)
    return found


def _refuse_ranks(tensors: list[Tensor], places: list[Place | None], axis: int) -> None:
    """Refuse what gives sorted examples something by their rank, which depends on the others."""
    for tensor, place in zip(tensors, places, strict=True):
        if place is None and tensor.dim() >= -axis and tensor.shape[axis] > 1:
            raise NotFollowed("sorted examples are treated by their rank")


@follows("where")
def _where(whose: Whose, args: Args, kwargs: Kwargs, result: object) -> Answer:
    if len(args) + len(kwargs) < 3:
        raise NotFollowed("indices are taken from the examples' values")
    return together(whose, args, kwargs, result)


@follows("prelu")
def _prelu(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    place, weight = whose.place(first(args, kwargs)), given(args, kwargs, 1, "weight")
    if place is not None and place.axis == 1 and isinstance(weight, Tensor) and weight.numel() > 1:
        raise NotFollowed("each example would get a slope of its own")
    return place


@follows("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like")
def _alike(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    """The same for all, in the shape of what belongs to each; what is like an order may become one."""
    where = whose.of(first(args, kwargs))
    if isinstance(where, Place):
        return Place(where.axis, where.before, where.after, bound=False) if where.order is None else None
    return where if isinstance(where, EveryExample) else None


@follows("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor", homes=(Tensor,))
def _new(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    if any(where is not None for where in whose.all_in([*args[1:], *kwargs.values()])):
        raise NotFollowed("a tensor is made from values of the examples")
    return None


_ELEMENTWISE_LOSSES = """mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy poisson_nll_loss kl_div
binary_cross_entropy_with_logits gaussian_nll_loss soft_margin_loss hinge_embedding_loss margin_ranking_loss"""


@follows(*_ELEMENTWISE_LOSSES.split(), homes=(functional,))
def _loss(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    refuse_reduction(kwargs)
    return meeting(whose, [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)])


def refuse_reduction(kwargs: Kwargs) -> None:
    """Refuse a loss that is added up over the batch."""
    old = [kwargs.get(name) for name in ("size_average", "reduce")]
    if kwargs.get("reduction") != "none" or any(value is not None for value in old):
        raise NotFollowed("the losses of several examples are added up; use reduction='none'")


@follows("cross_entropy", "nll_loss", homes=(functional,))
def _classes(whose: Whose, args: Args, kwargs: Kwargs, _result: object) -> Answer:
    """Classes are on the second axis and go away; a target may have them too, as probabilities."""
    refuse_reduction(kwargs)
    if whose.place(kwargs.get("weight")) is not None:
        raise NotFollowed("the weights of the classes belong to examples")
    scores, target = args[0], args[1]
    assert isinstance(scores, Tensor)
    assert isinstance(target, Tensor)

    def without_classes(tensor: Tensor) -> Place | None:
        place = whose.place(tensor)
        if place is None or (tensor is target and target.dim() < scores.dim()):
            return place
        if scores.dim() < 2 or place.axis == 1:
            raise NotFollowed("the examples are among the classes")
        return place.moved(place.axis - (place.axis > 1))

    return joined(without_classes(scores), without_classes(target))
