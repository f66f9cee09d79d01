"""The networks that are known by name."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from reticent.errors import UnknownName
from reticent.models.convolutional import cnn
from reticent.models.plain import head, linear, mlp
from reticent.models.recurrent import glove_rnn, rnn
from reticent.models.residual import wrn_16_4, wrn_28_2
from reticent.models.scattering import scattering_cnn, scattering_linear

Builder = Callable[[tuple[int, ...], int, str], nn.Module]


def _linear(inputs: tuple[int, ...], classes: int, _activation: str) -> nn.Module:
    return linear(inputs, classes)


def _head(inputs: tuple[int, ...], classes: int, _activation: str) -> nn.Module:
    return head(inputs, classes)


def _scattering_linear(inputs: tuple[int, ...], classes: int, _activation: str) -> nn.Module:
    return scattering_linear(inputs, classes)


BUILDERS: dict[str, Builder] = {
    "linear": _linear,
    "mlp": mlp,
    "cnn": cnn,
    "scattering-linear": _scattering_linear,
    "scattering-cnn": scattering_cnn,
    "rnn": rnn,
    "glove-rnn": glove_rnn,
    "wrn-16-4": wrn_16_4,
    "wrn-28-2": wrn_28_2,
    "head": _head,
}


def names() -> tuple[str, ...]:
    """The names `build` knows.

    >>> "cnn" in names()
    True
    """
    return tuple(BUILDERS)


def build(name: str, *, inputs: tuple[int, ...], classes: int, activation: str = "tanh") -> nn.Module:
    """Build a network for inputs of this shape.

    >>> sum(p.numel() for p in build("cnn", inputs=(1, 28, 28), classes=10).parameters())
    26010
    """
    if name not in BUILDERS:
        raise UnknownName("model", name, BUILDERS)
    return BUILDERS[name](tuple(inputs), classes, activation)
