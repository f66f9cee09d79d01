"""Activations by name: ReLU, tanh and the tempered sigmoids of Papernot et al. 2021."""

from __future__ import annotations

import re
from collections.abc import Callable

import torch
from torch import Tensor, nn

from reticent.errors import UnknownName

_TEMPERED = re.compile(r"tempered\(([\d.]+),([\d.]+),([\d.]+)\)")


class TemperedSigmoid(nn.Module):
    """scale * sigmoid(temperature * x) - offset; (2, 2, 1) is tanh.

    >>> x = torch.linspace(-3, 3, 7)
    >>> bool(torch.allclose(TemperedSigmoid(2, 2, 1)(x), torch.tanh(x), atol=1e-6))
    True
    """

    def __init__(self, scale: float, temperature: float, offset: float):
        super().__init__()
        self.scale, self.temperature, self.offset = scale, temperature, offset

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * torch.sigmoid(self.temperature * x) - self.offset

    def extra_repr(self) -> str:
        return f"{self.scale:g}, {self.temperature:g}, {self.offset:g}"


_PLAIN: dict[str, Callable[[], nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh}


def activation(name: str) -> nn.Module:
    """The activation with this name; `tempered(s,T,o)` is a tempered sigmoid.

    >>> activation("tempered(1.58,3,0.71)")
    TemperedSigmoid(1.58, 3, 0.71)
    """
    if name in _PLAIN:
        return _PLAIN[name]()
    match = _TEMPERED.fullmatch(name.replace(" ", ""))
    if match is None:
        raise UnknownName("activation", name, [*_PLAIN, "tempered(s,T,o)"])
    return TemperedSigmoid(*(float(number) for number in match.groups()))
