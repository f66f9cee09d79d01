"""Controls: what turns the public settings from round to round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from reticent.inside import RoundSettings


class Control(Protocol):
    """A schedule fixed before the run: the settings of a round follow from its number alone."""

    def turn(self, settings: RoundSettings) -> RoundSettings:
        """The settings of round `settings.number`, given those the run was planned with."""
        ...


@dataclass(frozen=True)
class Steady:
    """The same settings in every round."""

    def turn(self, settings: RoundSettings) -> RoundSettings:
        """The settings as they are."""
        return settings
