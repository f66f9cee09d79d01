"""The form of a convolution: each example's gradient is a sum of outer products over the places of its kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from reticent.gradients.forms.dense import Dense, Form, squares
from reticent.gradients.scratch import empty

_CONVOLUTIONS: tuple[Callable[..., Tensor], ...] = (functional.conv1d, functional.conv2d, functional.conv3d)
# Patches are copied for a few examples at a time, so that they are still in the cache when they are multiplied.
CACHED = 2**20


@dataclass(frozen=True, eq=False)
class Patches(Form):
    """Gradient of a convolution's weight for every example, from the layer's input and output gradient.

    `image` is the input, [examples, frames, *space, channels]; `outgoing` is the output gradient,
    [examples, frames, *places, channels out]; frames are images of one example that share the layer; `sides` is
    the padding before and after each axis of space.
    """

    image: Tensor
    outgoing: Tensor
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    sides: Sequence[tuple[int, int]]

    def measure(self) -> tuple[Tensor, Form]:
        squared = self.image.new_empty(len(self.image))
        return squared, self._written(squared)

    def _written(self, squared: Tensor | None = None) -> Dense:
        """Write the gradients out, and fill in their squared norms if asked, while they are in the cache."""
        n, channels, out = len(self.image), self.image.shape[-1], self.outgoing.shape[-1]
        if self.groups == channels > 1:
            found = self._depthwise()
            if squared is not None:
                squared.copy_(squares(found))
            return Dense(found, partial(_channels_second, kernel=self.kernel))
        places, taps = math.prod(self.outgoing.shape[1:-1]), math.prod(self.kernel)
        at_once = min(n, max(torch.get_num_threads(), CACHED // (places * taps * channels)))
        patches = empty((at_once, places, taps * channels), self.image, brief=1)
        found = empty((n, out, taps * channels // self.groups), self.image)
        room = self._room(at_once)
        for start in range(0, n, at_once):
            some = slice(start, min(n, start + at_once))
            held = patches[: some.stop - start]
            held.view(-1, *self.outgoing.shape[1:-1], *self.kernel, channels).copy_(self._windows(room(some)))
            self._multiply(self.outgoing[some].flatten(1, -2), held, found[some])
            if squared is not None:
                squared[some] = squares(found[some])
        return Dense(found, partial(_channels_second, kernel=self.kernel))

    def _depthwise(self) -> Tensor:
        """Where every channel has kernels of its own, a gradient is itself a convolution, by the output gradient.

        All examples, frames and channels are groups of one convolution: stride and dilation change places.
        """
        axes = len(self.kernel)
        image, outgoing = self.image.movedim(-1, 2), self.outgoing.movedim(-1, 2)
        n, frames, channels = image.shape[:3]
        around = [side for pair in reversed(self.sides) for side in pair]
        padded = functional.pad(image.reshape(1, n * frames * channels, *image.shape[3:]), around)
        if math.prod(outgoing.shape[3:]) == 1:  # as a convolution by one number each, a hundred times as slow
            for axis, (size, gap) in enumerate(zip(self.kernel, self.dilation, strict=True), 2):
                padded = padded[(slice(None),) * axis + (slice(0, (size - 1) * gap + 1, gap),)]
            taps = padded.reshape(n, frames, channels, 1, -1) * outgoing.reshape(n, frames, channels, -1, 1)
            return taps.sum(1).flatten(1, 2)
        found = _CONVOLUTIONS[axes - 1](
            padded,
            outgoing.reshape(-1, 1, *outgoing.shape[3:]),
            stride=self.dilation,
            dilation=self.stride,
            groups=n * frames * channels,
        )
        for axis, size in enumerate(self.kernel, 2):
            found = found.narrow(axis, 0, size)  # a kernel that does not reach the end leaves places over
        return found.reshape(n, frames, -1, math.prod(self.kernel)).sum(1)

    def _room(self, at_once: int) -> Callable[[slice], Tensor]:
        """Give a function that shows some images padded; the frame of zeros around them is drawn once."""
        if not any(before or after for before, after in self.sides):
            return lambda some: self.image[some].contiguous()
        frames, *space, channels = self.image.shape[1:]
        sizes = [size + before + after for size, (before, after) in zip(space, self.sides, strict=True)]
        padded = empty((at_once, frames, *sizes, channels), self.image, brief=2).zero_()
        middle = padded
        for axis, (size, (before, _)) in enumerate(zip(space, self.sides, strict=True)):
            middle = middle.narrow(2 + axis, before, size)

        def show(some: slice) -> Tensor:
            middle[: some.stop - some.start].copy_(self.image[some])
            return padded[: some.stop - some.start]

        return show

    def _windows(self, image: Tensor) -> Tensor:
        """All patches of padded images as one overlapping view."""
        n_stride, frame_stride, *space, channel_stride = image.stride()
        steps = [size * step for size, step in zip(space, self.stride, strict=True)]
        within = [size * gap for size, gap in zip(space, self.dilation, strict=True)]
        return image.as_strided(
            (len(image), *self.outgoing.shape[1:-1], *self.kernel, image.shape[-1]),
            (n_stride, frame_stride, *steps, *within, channel_stride),
        )

    def _multiply(self, outgoing: Tensor, patches: Tensor, found: Tensor) -> None:
        if self.groups == 1:
            torch.bmm(outgoing.transpose(1, 2), patches, out=found)
            return
        n, places = outgoing.shape[:2]
        left = outgoing.view(n, places, self.groups, -1).permute(0, 2, 3, 1)
        right = patches.view(n, places, math.prod(self.kernel), self.groups, -1).permute(0, 3, 1, 2, 4).flatten(3)
        found.copy_((left @ right).flatten(1, 2))

    def add_to(self, total: Tensor, weights: Tensor) -> None:
        self._written().add_to(total, weights)

    def dense(self) -> Tensor:
        return self._written().dense()

    def keep(self, rows: Tensor) -> Form:
        return replace(self, image=self.image[rows], outgoing=self.outgoing[rows])


def _channels_second(found: Tensor, kernel: tuple[int, ...]) -> Tensor:
    return found.view(*found.shape[:2], *kernel, -1).movedim(-1, 2)
