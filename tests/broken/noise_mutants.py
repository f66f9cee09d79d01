"""Mutants of the noise: where it comes from and where it lies; and of numbers so small that digits are lost."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from functools import partial
from typing import Any

import noise_checks as checks
import numpy as np
import torch
from broken_mutants import Mutant
from broken_mutants import mutant as any_mutant

import reticent.gradients.forms.outer as outer
import reticent.inside.lattice as lattice
import reticent.inside.on_device as on_device
import reticent.inside.vault as vault
from reticent.inside import GaussianNoise, Randomness
from reticent.inside.lattice import Lattice
from reticent.inside.randomness import Streams

MUTANTS: list[Mutant] = []
mutant = partial(any_mutant, among=MUTANTS)


@mutant(GaussianNoise, "_open", checks.no_digit_is_left_below_the_noise)
def noise_without_a_lattice(_right: Any) -> Any:
    def opened(self: GaussianNoise, sealed: Any, place: Any) -> torch.Tensor:
        noise = torch.from_numpy(place.stream(0).standard_normal(tuple(sealed._value.shape)))
        return sealed._value + self.noise_multiplier * sealed.sensitivity * noise

    return opened


@mutant(Lattice, "_points", checks.no_digit_is_left_below_the_noise)
def only_the_noise_is_rounded(_right: Any) -> Any:
    return lambda self, value, rng: value + self.grain * self._noise(rng, np.empty(len(value)))


@mutant(Lattice, "of", checks.noise_makes_up_for_rounding)
def lattice_without_the_larger_noise(right: Any) -> Any:
    def of(cls: type[Lattice], **public: Any) -> Lattice:
        made = right(cls, **public)
        return dataclasses.replace(made, spread=public["std"] / made.grain)

    return classmethod(of)


@mutant(Randomness, "stream", checks.streams_cannot_be_computed_back)
def generator_that_can_be_inverted(_right: Any) -> Any:
    def stream(self: Randomness, *place: Any) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64(int(self.seal(repr(place).encode()), 16)))

    return stream


@mutant(Randomness, "stream", checks.blocks_have_noise_of_their_own)
def one_stream_for_all_blocks(right: Any) -> Any:
    return lambda self, *place: right(self, *(place[:3] if "noise" in place else place))


@mutant(Streams, "key", checks.noise_of_a_device_is_of_each_place)
def one_key_for_all_noise_of_a_device(_right: Any) -> Any:
    return lambda self: bytes(32)


@mutant(lattice, "grains", checks.noise_of_a_device_is_of_each_place)
def every_part_begins_at_the_first_counter(right: Any) -> Any:
    return lambda key, _first, size, **law: right(key, 0, size, **law)


@mutant(on_device, "words", checks.noise_of_a_device_is_of_each_place)
def one_word_for_radius_and_angle(right: Any) -> Any:
    return lambda *place: right(*place)[:1].expand(16, -1).contiguous()


@mutant(vault, "slack", checks.noise_makes_up_for_float32)
def rounding_in_float32_forgotten(_right: Any) -> Any:
    return lambda batch_size, summed_in, **by_person: 1.0


@mutant(outer, "by_product", checks.short_factors_are_measured)
def norms_as_products_of_squares(_right: Any) -> Any:
    return lambda left, right: outer.squares(left) * outer.squares(right)


@mutant(outer, "_lossy", checks.short_factors_are_measured)
def lost_squares_are_believed(_right: Any) -> Any:
    return lambda one, _other: torch.zeros_like(one, dtype=torch.bool)


@mutant(outer, "_vanishing", checks.short_factors_are_measured)
def factors_are_scaled_until_they_vanish(_right: Any) -> Any:
    return lambda _part, weights: torch.zeros_like(weights, dtype=torch.bool)


@mutant(vault, "own_precision", checks.sums_are_exact_whatever_the_caller_has_on)
def sums_in_the_precision_of_the_caller(_right: Any) -> Any:
    return nullcontext
