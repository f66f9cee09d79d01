"""Networks on scattering features (Tramer and Boneh 2021): normalised per example, then linear or convolutional.

GroupNorm looks at one example only, so it is free; statistics over examples would have to be released and paid for.
"""

from __future__ import annotations

from torch import nn

from reticent.errors import ModelError
from reticent.models.activations import activation as named
from reticent.models.plain import linear

GROUPS = 27
_GREY, _COLOUR = 81, 243


def scattering_linear(inputs: tuple[int, ...], classes: int, groups: int | None = GROUPS) -> nn.Sequential:
    """Logistic regression on normalised scattering features; `groups=None` if they are normalised already.

    >>> [sum(p.numel() for p in scattering_linear(s, 10).parameters()) for s in ((81, 7, 7), (243, 8, 8))]
    [39700, 155530]
    """
    return nn.Sequential(*_normalise(inputs, groups), *linear(inputs, classes))


def scattering_cnn(
    inputs: tuple[int, ...], classes: int, activation: str = "tanh", groups: int | None = GROUPS
) -> nn.Sequential:
    """The scattering CNN of the papers: one shape for grey images (81 channels), one for colour (243).

    >>> [sum(p.numel() for p in scattering_cnn(s, 10).parameters()) for s in ((81, 7, 7), (243, 8, 8))]
    [33066, 187210]
    """
    normalise = _normalise(inputs, groups)
    channels, height, width = inputs
    if channels == _COLOUR:
        return nn.Sequential(
            *normalise,
            nn.Conv2d(channels, 64, 3, padding=1), named(activation), nn.MaxPool2d(2),
            nn.Conv2d(64, 64, 3, padding=1), named(activation),
            nn.Flatten(), nn.Linear(64 * (height // 2) * (width // 2), classes),
        )  # fmt: skip
    return nn.Sequential(
        *normalise,
        nn.Conv2d(channels, 16, 3, stride=2, padding=1), named(activation),
        nn.Conv2d(16, 32, 3, padding=1), named(activation),
        nn.Flatten(), nn.Linear(32 * -(-height // 2) * -(-width // 2), 32), named(activation),
        nn.Linear(32, classes),
    )  # fmt: skip


def _normalise(inputs: tuple[int, ...], groups: int | None) -> list[nn.Module]:
    if len(inputs) != 3 or inputs[0] not in (_GREY, _COLOUR):
        raise ModelError(
            f"scattering networks need features of {_GREY} or {_COLOUR} channels, not inputs of shape {inputs}: "
            "use reticent.data.extract(dataset, 'scattering'), or --features scattering"
        )
    return [] if groups is None else [nn.GroupNorm(groups, inputs[0], affine=False)]
