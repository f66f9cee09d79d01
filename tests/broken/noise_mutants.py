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
import reticent.inside.normals as normals
import reticent.inside.on_device as on_device
import reticent.inside.randomness as randomness
import reticent.inside.vault as vault
from reticent.inside import GaussianNoise, Randomness
from reticent.inside.kept import Pages
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
    def points(self: Lattice, value: Any, place: Any, block: int, out: Any) -> None:
        words, scratch, noise = lattice._scratch(len(value))
        place.fill(block, words)
        self._noise(words, scratch, noise)
        out[:] = value + self.grain * noise[: len(value)]

    return points


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


@mutant(Randomness, "fill", checks.blocks_have_noise_of_their_own)
def one_stream_for_all_blocks(right: Any) -> Any:
    return lambda self, out, *place: right(self, out, *place[:3])


@mutant(Randomness, "fill", checks.noise_does_not_depend_on_the_threads)
def a_stream_for_each_thread(right: Any) -> Any:
    return lambda self, out, *place: right(self, out, *place, torch.get_num_threads())


@mutant(lattice, "each", checks.noise_does_not_depend_on_the_threads)
def a_block_is_left_to_nobody(right: Any) -> Any:
    return lambda count, act: right(max(1, count - 1), act)


@mutant(lattice, "_scratch", checks.threads_have_memory_of_their_own)
def threads_share_their_buffers(right: Any) -> Any:
    kept: dict[int, Any] = {}
    return lambda size: kept.setdefault(size, right(size))


@mutant(normals, "_radii", checks.pairs_and_parts_are_independent)
def one_radius_for_all_pairs(right: Any) -> Any:
    def radii(words: Any, spare: Any, spread: float, out: Any) -> None:
        right(words, spare, spread, out)
        out[:] = out[0]

    return radii


@mutant(normals, "LONG", checks.small_words_go_on_in_others)
def the_tail_is_coarse(_right: Any) -> Any:
    return 0


@mutant(lattice, "uniform", checks.pairs_and_parts_are_independent)
def the_uniform_part_is_of_the_angles(_right: Any) -> Any:
    def uniform(words: Any, bits: int) -> Any:
        pairs = (len(words) - normals.SPARE) // 3
        return words[pairs : 2 * pairs].view(np.int32) >> (32 - bits)

    return uniform


@mutant(randomness, "fill", checks.streams_cannot_be_computed_back)
def words_by_a_generator_that_can_be_inverted(_right: Any) -> Any:
    def fill(out: Any, secret: bytes) -> None:
        out[:] = np.random.SFC64(int.from_bytes(secret, "little")).random_raw(len(out))

    return fill


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


@mutant(outer.Outer, "settled", checks.short_factors_are_measured)
def doubts_about_norms_are_not_read(_right: Any) -> Any:
    return lambda self, squares, _doubt: (squares, self)


@mutant(outer, "_lossy", checks.short_factors_are_measured)
def lost_squares_are_believed(_right: Any) -> Any:
    return lambda one, _other: torch.zeros_like(one, dtype=torch.bool)


@mutant(outer.Outer, "_alone", checks.short_factors_are_measured)
def lengths_tell_that_nobody_is_lost(_right: Any) -> Any:
    return lambda self, _narrow, _weights: None


@mutant(outer, "_vanishing", checks.short_factors_are_measured)
def factors_are_scaled_until_they_vanish(_right: Any) -> Any:
    return lambda _part, weights: torch.zeros_like(weights, dtype=torch.bool)


@mutant(vault, "own_precision", checks.sums_are_exact_whatever_the_caller_has_on)
def sums_in_the_precision_of_the_caller(_right: Any) -> Any:
    return nullcontext


@mutant(Pages, "like", checks.memory_in_use_is_not_given_again)
def memory_is_given_again_while_it_is_in_use(right: Any) -> Any:
    def like(self: Pages, vector: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = torch.from_numpy(self._memory[0]) if self._memory else right(self, vector)
        return made

    return like
