"""Mutants of distribution: what goes wrong where several processes make one run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import rank_checks as checks
import torch
from broken_mutants import Mutant
from broken_mutants import mutant as any_mutant

import reticent.opening as opening
from reticent.inside import Randomness, comparing, vault
from reticent.inside.lattice import BLOCK, Lattice
from reticent.inside.ranks import ALONE, Ranks
from reticent.inside.shares import Shares

MUTANTS: list[Mutant] = []
mutant = partial(any_mutant, among=MUTANTS)


@mutant(Lattice, "noised", checks.everybody_counts_once_with_noise_once)
def noise_on_every_rank(right: Any) -> Any:
    """Each rank noises the whole sum, and the noisy sums are put together once more."""

    def noised(self: Lattice, value: torch.Tensor, place: Any) -> torch.Tensor:
        whole = place.ranks.whole(value)
        parts = [right(self, whole, Randomness.from_seed(rank).at(0, "noise")) - whole for rank in range(2)]
        return whole + parts[0] + parts[1]

    return noised


@mutant(Lattice, "noised", checks.everybody_counts_once_with_noise_once)
def noise_on_no_rank(_right: Any) -> Any:
    return lambda self, value, place: place.ranks.whole(value)


@mutant(Lattice, "noised", checks.everybody_counts_once_with_noise_once)
def noise_on_the_first_rank_only(right: Any) -> Any:
    def noised(self: Lattice, value: torch.Tensor, place: Any) -> torch.Tensor:
        whole, noisy = place.ranks.whole(value), right(self, value, place)
        return torch.cat([noisy[:BLOCK], whole[BLOCK:]])

    return noised


@mutant(opening.Randomness, "from_state", checks.ranks_draw_alike)
def each_rank_its_own_mask(_right: Any) -> Any:
    return classmethod(lambda cls, _state: cls.fresh())


@mutant(Shares, "places", checks.everybody_counts_once_with_noise_once)
def each_rank_the_whole_draw(_right: Any) -> Any:
    return lambda self, index: [slice(0, len(index))] * self.count


@mutant(Ranks, "added", checks.everybody_counts_once_with_noise_once)
def mean_instead_of_sum(right: Any) -> Any:
    return lambda self, parts, shares: right(self, parts, shares) / shares


@mutant(Ranks, "added", checks.everybody_counts_once_with_noise_once)
def only_its_own_part(_right: Any) -> Any:
    return lambda self, parts, shares: parts[0]


@mutant(Ranks, "leads", checks.one_rank_charges)
def a_rank_that_charges(_right: Any) -> Any:
    return property(lambda self: True)


@mutant(Ranks, "in_turn", checks.nobody_goes_on_before_the_ledger_is_on_disk)
def a_rank_that_does_not_wait_for_the_ledger(_right: Any) -> Any:
    def in_turn(self: Ranks, act: Callable[[], Any]) -> Any:
        return ALONE.share(act)

    return in_turn


@mutant(opening, "compared", checks.ranks_that_differ_are_refused)
def examples_are_not_compared(_right: Any) -> Any:
    return lambda examples, randomness, ranks: ()


@mutant(comparing, "_refuse_overlap", checks.ranks_that_differ_are_refused)
def shards_are_not_compared(_right: Any) -> Any:
    return lambda shard, randomness, ranks: None


@mutant(opening, "refuse_other_model", checks.ranks_that_differ_are_refused)
def models_are_not_compared(_right: Any) -> Any:
    return lambda task, rows, ranks: None


@mutant(vault, "weights_of", checks.ranks_that_differ_are_refused)
def weights_are_not_compared(_right: Any) -> Any:
    return lambda query: []
