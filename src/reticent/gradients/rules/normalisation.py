"""Rules for layers that normalise within one example, then scale and shift."""

# ruff: noqa: ARG001 - a rule takes the arguments of the function it stands for

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

from torch import Tensor
from torch.nn import functional

from reticent.gradients.forms import Dense
from reticent.gradients.registry import rule
from reticent.gradients.uses import Forms, Use


class Affine(TypedDict, total=False):
    """What torch names when it asks for a layer that normalises, then scales and shifts."""

    weight: Tensor | None
    bias: Tensor | None
    eps: float


def parts(affine: Affine) -> tuple[Tensor | None, Tensor | None, float]:
    """Scale, shift and the number that keeps the variance from 0, as torch takes them if they are not named."""
    return affine.get("weight"), affine.get("bias"), affine.get("eps", 1e-5)


@rule(functional.layer_norm)
def layer_norm(use: Use, input: Tensor, normalized_shape: Sequence[int], **affine: Unpack[Affine]) -> Tensor:
    """Scale and shift of the last axes: sums over positions of the gradient, times the normalised input or not."""
    weight, bias, eps = parts(affine)
    axes = len(normalized_shape)

    def forms(gradient: Tensor) -> Forms:
        if use.wants(weight):
            normal = functional.layer_norm(input, normalized_shape, eps=eps)
            yield weight, Dense(use.positions(gradient * normal, axes).sum(1))
        if use.wants(bias):
            yield bias, Dense(use.positions(gradient, axes).sum(1))

    output = functional.layer_norm(input, normalized_shape, use.plain(weight), use.plain(bias), eps)
    return use.tap(output, (weight, bias), forms, saved=(input,))


@rule(functional.rms_norm)
def rms_norm(
    use: Use,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """The same without mean and shift."""

    def forms(gradient: Tensor) -> Forms:
        normal = functional.rms_norm(input, normalized_shape, eps=eps)
        yield weight, Dense(use.positions(gradient * normal, len(normalized_shape)).sum(1))

    output = functional.rms_norm(input, normalized_shape, use.plain(weight), eps)
    return use.tap(output, (weight,), forms, saved=(input,))


@rule(functional.group_norm)
def group_norm(use: Use, input: Tensor, num_groups: int, **affine: Unpack[Affine]) -> Tensor:
    """Scale and shift of the channels on the second axis."""
    weight, bias, eps = parts(affine)

    def forms(gradient: Tensor) -> Forms:
        if use.wants(weight):
            yield weight, _channels(use, gradient * functional.group_norm(input, num_groups, eps=eps))
        if use.wants(bias):
            yield bias, _channels(use, gradient)

    output = functional.group_norm(input, num_groups, use.plain(weight), use.plain(bias), eps)
    return use.tap(output, (weight, bias), forms, saved=(input,))


@rule(functional.batch_norm)
def batch_norm(
    use: Use,
    input: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """With statistics that are kept as they are; those of a batch are refused before."""
    if training:
        raise use.refuse("statistics are taken over the batch")

    def forms(gradient: Tensor) -> Forms:
        if use.wants(weight):
            normal = functional.batch_norm(input, running_mean, running_var, eps=eps)
            yield weight, _channels(use, gradient * normal)
        if use.wants(bias):
            yield bias, _channels(use, gradient)

    output = functional.batch_norm(input, running_mean, running_var, use.plain(weight), use.plain(bias), eps=eps)
    return use.tap(output, (weight, bias), forms, saved=(input, running_mean, running_var))


@rule(functional.instance_norm)
def instance_norm(
    use: Use,
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Every channel a group of its own."""
    if running_mean is not None or running_var is not None or not use_input_stats:
        raise use.refuse("running statistics have no rule")
    return group_norm(use, input, input.shape[1], weight=weight, bias=bias, eps=eps)


def _channels(use: Use, values: Tensor) -> Dense:
    summed = values.flatten(2).sum(2) if values.ndim > 2 else values
    return Dense(use.positions(summed).sum(1))
