"""Controls: what turns the public dials from round to round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from reticent.inside import Dials


class Control(Protocol):
    """A schedule fixed before the run: the dials of a round follow from its number alone."""

    def turn(self, dials: Dials) -> Dials:
        """The dials of round `dials.number`, given those the run was planned with."""
        ...


@dataclass(frozen=True)
class Steady:
    """The same dials in every round."""

    def turn(self, dials: Dials) -> Dials:
        """The dials as they are."""
        return dials
