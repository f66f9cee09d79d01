"""A network by name and numbers: enough to build it again where only its weights were kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from torch import nn

from reticent.errors import ModelError
from reticent.models.normalising import with_centre, with_fill, with_statistics
from reticent.models.presence import with_presence
from reticent.models.registry import build
from reticent.models.whitening import with_whiten


@dataclass(frozen=True, kw_only=True)
class Blueprint:
    """Which network, for what inputs and classes, and what is put in front of it.

    >>> sum(p.numel() for p in Blueprint(model="linear", inputs=(4,), classes=2).build().parameters())
    10
    """

    model: str
    inputs: tuple[int, ...]
    classes: int
    activation: str = "tanh"
    statistics: bool = False
    centre: bool = False
    whiten: bool = False
    fill: bool = False
    features: str | None = None
    """What is computed of an input before the network sees it."""
    made_of: tuple[int, ...] | None = None
    """The shape of an input before that: of another one features are made otherwise, and the answer would be wrong."""
    buckets: int | None = None
    """Inputs are places among so many: the first layer is made for that."""

    def build(self, network: nn.Module | None = None) -> nn.Module:
        """The network, with fresh weights, or one that somebody else made; with what is put in front of it."""
        if network is None:
            network = self._built()
        in_front = self.statistics and self.buckets is None  # a layer for places has its statistics in itself
        network = with_statistics(network, self.inputs) if in_front else network
        network = with_centre(network, self.inputs) if self.centre else network
        network = with_whiten(network, self.inputs) if self.whiten else network
        return with_fill(network, self.inputs) if self.fill else network

    def _built(self) -> nn.Module:
        inputs = self.inputs if self.buckets is None else (self.buckets,)
        network = build(self.model, inputs=inputs, classes=self.classes, activation=self.activation)
        if self.buckets is None:
            return network
        if self.centre or self.whiten:
            raise ModelError("hashed words are there or not: leave out centre and whiten, or take statistics_noise")
        return with_presence(network, self.buckets)

    def to_json(self) -> dict[str, object]:
        """Everything as plain JSON data."""
        return asdict(self) | {
            "inputs": list(self.inputs),
            "made_of": None if self.made_of is None else list(self.made_of),
        }

    @staticmethod
    def from_json(data: Mapping[str, object]) -> Blueprint:
        """The blueprint that `to_json` wrote.

        >>> plan = Blueprint(model="linear", inputs=(4,), classes=2)
        >>> Blueprint.from_json(plan.to_json()) == plan
        True
        """
        shapes = {name: tuple(value) for name, value in data.items() if isinstance(value, list)}
        return Blueprint(**{**data, **shapes})  # type: ignore[arg-type]
