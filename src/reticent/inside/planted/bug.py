"""A bug: one wrong piece, planted for as long as an audit looks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

from reticent.errors import UnknownName

Code = Callable[..., Any]


@dataclass
class Planting:
    """What a planted bug did."""

    asked: int = 0
    """How often the wrong piece was asked for anything: never, if a method does without it."""


@dataclass(frozen=True)
class Bug:
    """One wrong piece: `broken` makes it out of the right one."""

    name: str
    says: str
    owner: type
    attribute: str
    broken: Callable[[Code], Code]

    @contextmanager
    def planted(self) -> Iterator[Planting]:
        """The piece is wrong inside, and right again afterwards."""
        right, found = self.owner.__dict__[self.attribute], Planting()
        wrong = self.broken(right)

        @wraps(right)
        def watched(*given: Any, **named: Any) -> Any:
            found.asked += 1
            return wrong(*given, **named)

        setattr(self.owner, self.attribute, watched)
        try:
            yield found
        finally:
            setattr(self.owner, self.attribute, right)


_BUGS: dict[str, Bug] = {}


def bugs() -> list[Bug]:
    """Every bug that can be planted."""
    return [_BUGS[name] for name in sorted(_BUGS)]


def find(name: str) -> Bug:
    """A bug by its name.

    >>> find("no-noise").says
    'the noise is forgotten'
    """
    if name not in _BUGS:
        raise UnknownName("planted bug", name, _BUGS)
    return _BUGS[name]


def bug(owner: type, attribute: str, says: str) -> Callable[[Callable[[Code], Code]], Callable[[Code], Code]]:
    """Note a function as the bug of its name: it is given the right piece and answers with the wrong one."""

    def note(broken: Callable[[Code], Code]) -> Callable[[Code], Code]:
        name = broken.__name__.strip("_").replace("_", "-")
        _BUGS[name] = Bug(name, says, owner, attribute, broken)
        return broken

    return note
