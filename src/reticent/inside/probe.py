"""The probe: the one supported window into the vault; a run that it watches is a test and states no guarantee."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from reticent.accounting import Event
from reticent.errors import SettingError
from reticent.inside.draws import Draw, Sampler
from reticent.inside.mechanisms import Mechanism
from reticent.inside.sealed import Sealed
from reticent.inside.settings import RoundSettings
from reticent.inside.vault import Vault


@dataclass(frozen=True, eq=False)
class Opening:
    """One pass through the door: the sealed answer, what the door said it costs, and what came out."""

    sealed: Tensor
    sensitivity: float
    drawn: int
    event: Event
    released: Tensor


class Probe(Vault):
    """A vault that does all that a vault does, and writes down what nobody outside may see."""

    def __init__(self, vault: Vault, replay: Sequence[Opening] = ()):
        self.__dict__ = vault.__dict__  # the same vault, not a second one: examples, coins, ledger, allowance
        self.openings: list[Opening] = []
        self._replay = list(replay)

    def release(self, sealed: Sealed, mechanism: Mechanism) -> Tensor:
        """The door, watched; with a replay, what came out of another run comes out again."""
        kept = sealed._value.clone()
        released = super().release(sealed, mechanism)
        event = sealed.draw.amplify(mechanism.event())
        self.openings.append(Opening(kept, sealed.sensitivity, len(sealed.draw._index), event, released.clone()))
        if len(self.openings) <= len(self._replay):
            return self._replay[len(self.openings) - 1].released.clone()
        return released

    def draws(self, sampler: Sampler, settings: RoundSettings, rounds: int) -> Iterator[NDArray[np.int64]]:
        """Who would be drawn in each of so many rounds, by the coins of this run."""
        for number in range(rounds):
            with self.round(number):
                draw: Draw = self.draw(sampler, replace(settings, number=number))
            yield draw._index


def watch(run: Any, replay: Sequence[Opening] = ()) -> Probe:
    """Watch a run that is kept in memory; from now on it refuses to state a guarantee.

    A `replay` of what another run released makes the world outside the same for both: then every sealed answer may be
    compared, and any difference outside came round the door.
    """
    if run._folder is not None:
        raise SettingError("a watched run is a test and must not be stored: make it without a folder")
    run._vault = Probe(run._vault, replay)
    run.guarantee = _refuse
    return run._vault  # type: ignore[no-any-return]


def _refuse() -> NoReturn:
    raise SettingError("this run was watched by a probe, which saw its examples: it states no guarantee")
