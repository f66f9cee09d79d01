"""A tally: what was tried, and what went wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """How often each thing was tried, and every case in which it did not hold."""

    name: str
    tried: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, kind: str, problem: str | None) -> None:
        """One case, and what was wrong with it, if something was."""
        self.tried[kind] += 1
        if problem is not None:
            self.wrong.append(f"{kind}: {problem}")

    @property
    def cases(self) -> int:
        """How many cases there were."""
        return sum(self.tried.values())

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.tried.items()))
        said = f"{self.name}: {self.cases} cases, {len(self.wrong)} wrong ({kinds})"
        return "\n  ".join([said, *self.wrong[:20]])
