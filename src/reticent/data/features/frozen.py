"""A network of one's own that was trained on public data: frozen, and asked for what one of its layers says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from reticent.errors import ModelError

_TOGETHER = 16  # images: more of them leave the cache


class Frozen(nn.Module):
    """Features of each example by a network's `layer`, or by its answer, that training never changes.

    Images are resized to `size` pixels, shown in so many `colours` if they have one, and scaled by `mean` and `std`, as
    the network was trained to see them. What has a height and width is averaged over both, what has tokens over those.
    What it was `trained_on` must be public; the guarantee of every model on its features names it.

    >>> network = nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(980, 10))
    >>> Frozen(network, trained_on="ImageNet", layer="1", size=16, colours=3)(torch.rand(2, 1, 8, 8)).shape
    torch.Size([2, 5])
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        network: nn.Module,
        *,
        trained_on: str,
        layer: str | None = None,
        size: int | None = None,
        colours: int | None = None,
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
        name: str | None = None,
    ):
        super().__init__()
        if not trained_on.strip():
            raise ModelError("say what the network was trained on: the guarantee names it")
        if layer is not None and layer not in (names := [name for name, _ in network.named_modules() if name]):
            raise ModelError(f"the network has no layer {layer!r}; it has {', '.join(names[:40])}")
        self.network = network.eval().requires_grad_(False)
        self.layer, self.size, self.colours = layer, size, colours
        self.register_buffer("mean", _by_colour(mean))
        self.register_buffer("std", _by_colour(std))
        self.stands_on = (f"{name or type(network).__name__} counts as public: it was trained on {trained_on.strip()}",)
        self.training = False

    def extra_repr(self) -> str:
        """What tells these features from others of the same weights: they are kept under it."""
        return f"layer={self.layer!r}, size={self.size}, colours={self.colours}"

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self._of(some) for some in torch.split(x, _TOGETHER)])

    def train(self, mode: bool = True) -> Frozen:  # noqa: ARG002 - as torch has it
        """Stay in evaluation mode: batch statistics would mix examples."""
        return self

    def _of(self, x: Tensor) -> Tensor:
        found = self._asked(self._seen(x))
        if not isinstance(found, Tensor) or found.ndim < 2 or len(found) != len(x):
            what = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise ModelError(f"{len(x)} examples gave {what} and not a row each: name a layer= that gives such rows")
        if found.ndim == 4:
            return found.mean((2, 3))
        return found.mean(1) if found.ndim == 3 else found.flatten(1)

    def _seen(self, x: Tensor) -> Tensor:
        if x.ndim == 4 and x.shape[1] == 1 and self.colours is not None:
            x = x.expand(-1, self.colours, -1, -1)
        if self.size is not None:
            size = (self.size, self.size)
            x = nn.functional.interpolate(x, size=size, mode="bicubic", align_corners=False, antialias=True)
        return (x - self.mean) / self.std if x.is_floating_point() else x

    def _asked(self, x: Tensor) -> Any:
        if self.layer is None:
            return self.network(x)
        answers: list[Any] = []
        hook = self.network.get_submodule(self.layer).register_forward_hook(lambda *seen: answers.append(seen[-1]))
        try:
            self.network(x)
        finally:
            hook.remove()
        if not answers:
            raise ModelError(f"the network does not use its layer {self.layer!r}: name another")
        return answers[-1]  # of a layer that is used several times, the last


def _by_colour(value: float | Sequence[float]) -> Tensor:
    numbers = torch.as_tensor(value, dtype=torch.float32)
    return numbers if numbers.ndim == 0 else numbers.reshape(-1, 1, 1)
