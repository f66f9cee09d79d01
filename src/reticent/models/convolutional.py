"""The papers' convolutional networks for grey and colour images, and a small one for 8x8 digits."""

from __future__ import annotations

import torch
from torch import nn

from reticent.errors import ModelError
from reticent.models.activations import activation as named
from reticent.models.normalising import PublicNormalise

# The usual ImageNet constants: public, and so free.
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_SMALL = 20


def grey_cnn(inputs: tuple[int, ...], classes: int, activation: str = "tanh") -> nn.Sequential:
    """The CNN of DPSUR Table 5 for MNIST and Fashion-MNIST.

    >>> sum(p.numel() for p in grey_cnn((1, 28, 28), 10).parameters())
    26010
    """
    features = [
        nn.Conv2d(inputs[0], 16, 8, stride=2, padding=2), named(activation), nn.MaxPool2d(2, stride=1),
        nn.Conv2d(16, 32, 4, stride=2), named(activation), nn.MaxPool2d(2, stride=1),
    ]  # fmt: skip
    return _with_classifier(features, inputs, 32, classes, activation)


def colour_cnn(inputs: tuple[int, ...], classes: int, activation: str = "tanh") -> nn.Sequential:
    """The CNN of DPSUR Table 6 for CIFAR-10, with its public normalisation inside.

    >>> sum(p.numel() for p in colour_cnn((3, 32, 32), 10).parameters())
    550570
    """
    features: list[nn.Module] = [PublicNormalise(_MEAN, _STD)]
    before = inputs[0]
    for width in (32, 64, 128):
        features += [
            nn.Conv2d(before, width, 3, padding=1), named(activation),
            nn.Conv2d(width, width, 3, padding=1), named(activation),
            nn.MaxPool2d(2),
        ]  # fmt: skip
        before = width
    return _with_classifier(features, inputs, 128, classes, activation)


def small_cnn(inputs: tuple[int, ...], classes: int, activation: str = "tanh") -> nn.Sequential:
    """A CNN for images too small for the papers' kernels, such as the 8x8 digits.

    >>> small_cnn((1, 8, 8), 10)(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    """
    features = [
        nn.Conv2d(inputs[0], 16, 3, padding=1), named(activation), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), named(activation), nn.MaxPool2d(2),
    ]  # fmt: skip
    return _with_classifier(features, inputs, 32, classes, activation)


def cnn(inputs: tuple[int, ...], classes: int, activation: str = "tanh") -> nn.Sequential:
    """The papers' CNN for this input shape.

    >>> len(cnn((3, 32, 32), 10)) > len(cnn((1, 28, 28), 10))
    True
    """
    if len(inputs) != 3 or min(inputs[1:]) < 4:
        raise ModelError(f"cnn needs images (channels, height, width) of 4 pixels or more, not {inputs}: try mlp")
    if min(inputs[1:]) < _SMALL:
        return small_cnn(inputs, classes, activation)
    return (colour_cnn if inputs[0] == 3 else grey_cnn)(inputs, classes, activation)


def _with_classifier(
    features: list[nn.Module], inputs: tuple[int, ...], hidden: int, classes: int, activation: str
) -> nn.Sequential:
    """Add the two fully connected layers; their width is what the features leave of the image."""
    body = nn.Sequential(*features, nn.Flatten())
    with torch.no_grad():
        width = body(torch.zeros(1, *inputs)).shape[1]
    return nn.Sequential(*body, nn.Linear(width, hidden), named(activation), nn.Linear(hidden, classes))
