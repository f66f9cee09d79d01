"""Bugs of noise: what hides one example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from reticent.inside.mechanisms import GaussianNoise
from reticent.inside.planted.bug import Code, bug
from reticent.inside.randomness import Randomness, Streams
from reticent.inside.sealed import Sealed
from reticent.inside.vault import Vault


@bug(GaussianNoise, "_open", "the noise is forgotten")
def _no_noise(_right: Code) -> Code:
    return lambda _self, sealed, _place: sealed._value.clone()


def _rescaled(right: Code, factor: Callable[[Sealed], float]) -> Code:
    """The same noise, times a factor."""

    def opened(self: GaussianNoise, sealed: Sealed, place: Streams) -> Tensor:
        noise: Tensor = right(self, sealed, place) - sealed._value
        return sealed._value + factor(sealed) * noise

    return opened


@bug(GaussianNoise, "_open", "the noise has half the standard deviation it should have")
def _half_noise(right: Code) -> Code:
    return _rescaled(right, lambda _sealed: 0.5)


@bug(GaussianNoise, "_open", "the noise is divided by the batch size twice")
def _noise_over_batch(right: Code) -> Code:
    return _rescaled(right, lambda sealed: 1 / sealed.draw.settings.batch_size)


@bug(GaussianNoise, "_open", "the noise ignores the clip norm")
def _noise_without_clip_norm(right: Code) -> Code:
    return _rescaled(right, lambda sealed: 1 / sealed.sensitivity)


@bug(GaussianNoise, "_open", "the second half of the parameters gets no noise")
def _noise_on_some(right: Code) -> Code:
    def opened(self: GaussianNoise, sealed: Sealed, place: Streams) -> Tensor:
        released: Tensor = right(self, sealed, place)
        half = released.numel() // 2
        released.view(-1)[half:] = sealed._value.view(-1)[half:]
        return released

    return opened


@bug(GaussianNoise, "_open", "the noise has the precision of bfloat16")
def _coarse_noise(right: Code) -> Code:
    def opened(self: GaussianNoise, sealed: Sealed, place: Streams) -> Tensor:
        noise: Tensor = right(self, sealed, place) - sealed._value
        return sealed._value + noise.bfloat16().to(noise.dtype)

    return opened


@bug(Randomness, "_digest", "every round has the same noise")
def _reused_noise(right: Code) -> Code:
    return lambda self, place: right(self, ("noise",) if "noise" in place else place)


@bug(Vault, "release", "an empty draw gets no noise")
def _no_noise_when_empty(right: Code) -> Code:
    def release(self: Vault, sealed: Sealed, mechanism: Any) -> Tensor:
        released: Tensor = right(self, sealed, mechanism)
        return released if len(sealed.draw._index) else sealed._value.clone()

    return release


@bug(Vault, "release", "the sum is divided by the size of the draw, not by the declared batch size")
def _realised_batch_size(right: Code) -> Code:
    def release(self: Vault, sealed: Sealed, mechanism: Any) -> Tensor:
        released: Tensor = right(self, sealed, mechanism)
        return released * (sealed.draw.settings.batch_size / max(len(sealed.draw._index), 1))

    return release
