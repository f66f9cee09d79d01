"""Bundle: several releases that one event pays for."""

from __future__ import annotations

from collections.abc import Sequence

from reticent.accounting import Event
from reticent.errors import SettingError


class Bundle:
    """Several releases covered by one event."""

    def __init__(self, event: Event, covers: list[Event], context: Sequence[bytes | memoryview]):
        self.event = event
        self.context = context
        self.written = False
        self._left = covers

    def take(self, event: Event) -> None:
        """Tick off one covered release, or refuse what the event does not pay for."""
        if not self._left or self._left[0] != event:
            expected = self._left[0] if self._left else "nothing more"
            raise SettingError(f"the bundle covers {expected} next, not {event}: nothing was released")
        self._left.pop(0)
