"""Wide residual networks with GroupNorm, plain or with the weight standardisation of De et al. 2022."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from reticent.errors import ModelError

GROUPS = 16
_STEM = 16


class StandardisedConv2d(nn.Conv2d):
    """A convolution whose kernels have mean 0 and variance 1/fan-in for each output channel, times a learnt gain."""

    def __init__(self, before: int, after: int, size: int, stride: int = 1, padding: int = 0, bias: bool = True):
        super().__init__(before, after, size, stride=stride, padding=padding, bias=bias)
        self.gain = nn.Parameter(torch.ones(after, 1, 1, 1))

    def standardised(self) -> Tensor:
        """The kernels as they are applied."""
        variance, mean = torch.var_mean(self.weight, dim=(1, 2, 3), keepdim=True, correction=0)
        scale = torch.rsqrt(variance * self.weight[0].numel() + 1e-4)
        return (self.weight - mean) * scale * self.gain

    def forward(self, x: Tensor) -> Tensor:
        return functional.conv2d(x, self.standardised(), self.bias, self.stride, self.padding)


@dataclass(frozen=True)
class Style:
    """How the network is put together: De et al.'s standardised kernels, or the ordinary pre-activation network."""

    standardise: bool
    bias: bool

    def convolution(self, before: int, after: int, size: int, stride: int = 1) -> nn.Conv2d:
        """A convolution that keeps the image size, up to the stride."""
        kind = StandardisedConv2d if self.standardise else nn.Conv2d
        return kind(before, after, size, stride=stride, padding=size // 2, bias=self.bias)


DE_ET_AL = Style(standardise=True, bias=True)
PLAIN = Style(standardise=False, bias=False)
PLAIN_WITH_BIAS = Style(standardise=False, bias=True)


class Block(nn.Module):
    """Two normalised convolutions around a shortcut, which has a convolution where the shape changes.

    De et al. give the shortcut a norm of its own and put the activation before each norm; the ordinary network
    shares the first norm and puts the activation after it.
    """

    def __init__(self, before: int, after: int, stride: int, style: Style):
        super().__init__()
        self.activate_first = style.standardise
        self.norm1 = nn.GroupNorm(GROUPS, before)
        self.conv1 = style.convolution(before, after, 3, stride)
        self.norm2 = nn.GroupNorm(GROUPS, after)
        self.conv2 = style.convolution(after, after, 3)
        changes = before != after or stride != 1
        self.skip = style.convolution(before, after, 1, stride) if changes else None
        self.skip_norm = nn.GroupNorm(GROUPS, before) if changes and style.standardise else None

    def forward(self, x: Tensor) -> Tensor:
        start = _prepare(self.norm1, x, self.activate_first)
        branch: Tensor = self.conv2(_prepare(self.norm2, self.conv1(start), self.activate_first))
        if self.skip is not None:
            x = self.skip(start if self.skip_norm is None else _prepare(self.skip_norm, x, self.activate_first))
        return x + branch


def _prepare(norm: nn.GroupNorm, x: Tensor, activate_first: bool) -> Tensor:
    return norm(functional.relu(x)) if activate_first else functional.relu(norm(x))


class WideResNet(nn.Module):
    """WRN-depth-width: three stages of (depth - 4) / 6 blocks, mean pooling, a linear layer.

    >>> sum(p.numel() for p in WideResNet(16, 4, classes=10).parameters())
    2753818
    >>> sum(p.numel() for p in WideResNet(16, 4, classes=10, style=PLAIN).parameters())
    2748890
    """

    def __init__(self, depth: int, width: int, *, classes: int, channels: int = 3, style: Style = DE_ET_AL):
        super().__init__()
        if depth < 10 or depth % 6 != 4:
            raise ModelError(f"a wide residual network has depth 6n + 4, such as 16, 22, 28 or 40, not {depth}")
        self.activate_first = style.standardise
        self.stem = style.convolution(channels, _STEM, 3)
        blocks, before = [], _STEM
        for stage, after in enumerate((16 * width, 32 * width, 64 * width)):
            for index in range((depth - 4) // 6):
                stride = 2 if stage > 0 and index == 0 else 1
                blocks.append(Block(before, after, stride, style))
                before = after
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.GroupNorm(GROUPS, before)
        self.classify = nn.Linear(before, classes)

    def forward(self, x: Tensor) -> Tensor:
        features = _prepare(self.norm, self.blocks(self.stem(x)), self.activate_first)
        logits: Tensor = self.classify(features.mean(dim=(2, 3)))
        return logits


def wrn_16_4(inputs: tuple[int, ...], classes: int, _activation: str = "relu") -> WideResNet:
    """WRN-16-4 of De et al. (and PD-SGD's CIFAR-10 network); it keeps its ReLU.

    >>> wrn_16_4((3, 32, 32), 10)(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 10])
    """
    return WideResNet(16, 4, classes=classes, channels=inputs[0])


def wrn_28_2(inputs: tuple[int, ...], classes: int, _activation: str = "relu") -> WideResNet:
    """WRN-28-2, PD-SGD's CIFAR-100 network; it keeps its ReLU.

    >>> sum(p.numel() for p in wrn_28_2((3, 32, 32), 100).parameters())
    1483508
    """
    return WideResNet(28, 2, classes=classes, channels=inputs[0])
