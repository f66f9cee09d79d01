"""What an executor is: it begins pieces of work, each in a process of its own, and says when one is over."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

Tell = Callable[[int, int], None]
"""Says how much of how much is done."""
Work = Callable[[Tell], Any]
"""Something to do elsewhere: it is sent there, so it must be a function with a name, or a `partial` of one."""
Advanced = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Ended:
    """What came of a piece of work: its answer, or why there is none."""

    name: str
    answer: Any = None
    error: str | None = None


class Executor(Protocol):
    """Promise: whatever happens to one piece of work, it ends, and the others go on."""

    @property
    def at_once(self) -> int:
        """How many to begin before one is over."""
        ...

    def begin(self, name: str, work: Work) -> None:
        """Let it be done."""
        ...

    def ended(self, advanced: Advanced) -> list[Ended]:
        """Wait until one or more are over; what they say of themselves meanwhile is passed on, if it is heard."""
        ...

    def stop(self) -> None:
        """Let go of everything; what is still at work is killed."""
        ...


def each(
    make: Callable[[], Executor],
    works: Iterable[tuple[str, Work]],
    *,
    began: Callable[[str], None] = lambda _name: None,
    advanced: Advanced = lambda _name, _done, _total: None,
    more: Callable[[], bool] = lambda: True,
) -> Iterator[Ended]:
    """What came of each, as it comes; an executor is made if there is anything to do.

    As soon as `more` says no, nothing is begun any more.
    """
    waiting, at_work = deque(works), 0
    if not waiting:
        return
    executor = make()
    try:
        while waiting or at_work:
            while waiting and at_work < executor.at_once and more():
                name, work = waiting.popleft()
                executor.begin(name, work)
                at_work += 1
                began(name)
            if not at_work:
                break
            for over in executor.ended(advanced):
                at_work -= 1
                yield over
    finally:
        executor.stop()
