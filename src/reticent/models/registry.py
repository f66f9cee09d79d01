"""The networks that are known by name."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from reticent.errors import UnknownName
from reticent.models.cnn import cnn
from reticent.models.plain import head, linear, mlp

Builder = Callable[[tuple[int, ...], int, str], nn.Module]


def _linear(inputs: tuple[int, ...], classes: int, _activation: str) -> nn.Module:
    return linear(inputs, classes)


def _head(inputs: tuple[int, ...], classes: int, _activation: str) -> nn.Module:
    return head(inputs, classes)


BUILDERS: dict[str, Builder] = {"linear": _linear, "mlp": mlp, "cnn": cnn, "head": _head}


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
