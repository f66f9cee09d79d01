"""Rules for convolutions of one to three dimensions and for transposed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from reticent.gradients.forms import Dense, Patches
from reticent.gradients.layouts import Layout
from reticent.gradients.registry import rule
from reticent.gradients.uses import Forms, Use

Sizes = int | Sequence[int]


def _each(value: Sizes, dimensions: int) -> tuple[int, ...]:
    sizes = (value,) if isinstance(value, int) else tuple(value)
    return sizes * dimensions if len(sizes) == 1 else sizes


def _sides(padding: Sizes | str, kernel: Sequence[int], dilation: Sequence[int]) -> list[tuple[int, int]]:
    """Padding before and after each axis of space; 'same' puts the odd one after, as torch does."""
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding == "same":
        totals = [gap * (size - 1) for size, gap in zip(kernel, dilation, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    assert not isinstance(padding, str)
    return [(size, size) for size in _each(padding, len(kernel))]


class _Settings(NamedTuple):
    """What torch is told of a convolution, in its order."""

    stride: Sizes = 1
    padding: Sizes | str = 0
    dilation: Sizes = 1
    groups: int = 1


class _Mirrored(NamedTuple):
    """What torch is told of a transposed convolution, in its order."""

    stride: Sizes = 1
    padding: Sizes = 0
    output_padding: Sizes = 0
    groups: int = 1
    dilation: Sizes = 1


class _Slide(NamedTuple):
    """How the kernel goes over the image: its size, steps, gaps between its entries, groups of channels, padding."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    sides: list[tuple[int, int]]


def _slide(
    use: Use, input: Tensor, weight: Tensor, stride: Sizes, padding: Sizes | str, dilation: Sizes, groups: int
) -> _Slide:
    kernel = tuple(weight.shape[2:])
    if input.ndim != len(kernel) + 2:
        raise use.refuse("the input has no axis of examples")
    gaps = _each(dilation, len(kernel))
    return _Slide(kernel, _each(stride, len(kernel)), gaps, groups, _sides(padding, kernel, gaps))


def _frames(use: Use, image: Tensor) -> Tensor:
    """View images as [examples, frames, *space, channels]."""
    first = use.first(image.movedim(1, -1))
    return first.unsqueeze(1) if use.layout is Layout.FIRST else first


def _forms(
    use: Use, weight: Tensor, bias: Tensor | None, sides: Callable[[Tensor], tuple[Tensor, Tensor]], slide: _Slide
) -> Callable[[Tensor], Forms]:
    """What the output's gradient becomes; `sides` says what the kernel slides over, and what weighs its patches."""

    def forms(gradient: Tensor) -> Forms:
        if use.wants(weight):
            image, places = sides(gradient)
            yield weight, Patches(_frames(use, image), _frames(use, places).contiguous(), *slide)
        yield from _bias(use, bias, gradient)

    return forms


def channels_last(images: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Both in the layout that torch is quickest with."""
    # A clone says so even where there is one channel only.
    return images.contiguous(memory_format=torch.channels_last), weight.clone(memory_format=torch.channels_last)


def _convolution(function: Callable[..., Tensor], dimensions: int) -> None:
    @rule(function)
    def run(use: Use, input: Tensor, weight: Tensor, bias: Tensor | None = None, *given: Any, **named: Any) -> Tensor:
        how = _Settings(*given, **named)
        slide = _slide(use, input, weight, *how)
        forms = _forms(use, weight, bias, lambda gradient: (input, gradient), slide)
        value = use.plain(weight)
        if use.channels_last and dimensions == 2:
            input, value = channels_last(input, value)
        return use.tap(function(input, value, use.plain(bias), *how), (weight, bias), forms, saved=(input,))


def _transposed(function: Callable[..., Tensor]) -> None:
    @rule(function)
    def run(use: Use, input: Tensor, weight: Tensor, bias: Tensor | None = None, *given: Any, **named: Any) -> Tensor:
        """The mirror image: the kernel slides over the output's gradient, and the input weighs its patches."""
        how = _Mirrored(*given, **named)
        slide = _slide(use, input, weight, how.stride, how.padding, how.dilation, how.groups)
        forms = _forms(use, weight, bias, lambda gradient: (gradient, input), slide)
        return use.tap(function(input, *use.plain((weight, bias)), *how), (weight, bias), forms, saved=(input,))


def _bias(use: Use, bias: Tensor | None, gradient: Tensor) -> Forms:
    if use.wants(bias):
        summed = use.first(gradient.flatten(2).sum(2))
        yield bias, Dense(summed if use.layout is Layout.FIRST else summed.sum(1))


for _dimensions, _function in enumerate((functional.conv1d, functional.conv2d, functional.conv3d), 1):
    _convolution(_function, _dimensions)
for _mirrored in (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d):
    _transposed(_mirrored)
