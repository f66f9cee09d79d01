"""Private diagnostics: numbers about the examples themselves, for research, outside every guarantee."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass
class Record:
    """What one round did to the examples it drew; all of it is private."""

    round: int
    attempts: int = 0
    kept: bool = False
    drawn: int = 0
    bounded: int = 0
    not_finite: int = 0
    norm_sum: float = 0.0


class Diagnostics:
    """Collects one record a round; whoever turns it on must keep it as secret as the examples.

    >>> seen = Diagnostics(); seen.begin(0); seen.saw(torch.tensor([1.0, 4.0]), torch.tensor([1.0, 0.25]))
    >>> seen.records()
    [{'private': True, 'round': 0, 'attempts': 0, 'kept': False, 'drawn': 2, 'bounded': 1, 'not_finite': 0,
      'norm_sum': 5.0}]
    """

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._taken: list[int] = []
        self._drawn, self._used = Counter[int](), Counter[int]()

    def begin(self, number: int) -> None:
        """A new round begins."""
        self._records.append(Record(number))
        self._taken = []

    def again(self) -> None:
        """What was counted of the last query is counted once more: it failed half-way."""
        last = self._records[-1]
        self._records[-1] = Record(last.round, last.attempts, last.kept)

    def settled(self, *, attempts: int, kept: bool) -> None:
        """The round is over after so many candidates."""
        self._records[-1].attempts, self._records[-1].kept = attempts, kept
        self._drawn.update(self._taken)
        self._used.update(self._taken if kept else ())

    def took(self, index: NDArray[np.int64]) -> None:
        """These examples were drawn, whose norms nobody looked at."""
        self._records[-1].drawn += len(index)
        self._taken = index.tolist()

    def saw(self, norms: Tensor, weights: Tensor) -> None:
        """Take in the gradient norms of drawn examples and the weights they were given."""
        record = self._records[-1]
        finite = torch.isfinite(norms)
        record.drawn += len(norms)
        record.bounded += int((weights < 1).sum())
        record.not_finite += int((~finite).sum())
        record.norm_sum += float(norms[finite].sum())

    def records(self) -> list[dict[str, object]]:
        """The records so far, each marked as private; where examples were counted, the last tells how often."""
        told: list[dict[str, object]] = [{"private": True, **asdict(record)} for record in self._records]
        if self._drawn:
            uses = {name: _by_example(count) for name, count in (("drawn", self._drawn), ("kept", self._used))}
            told[-1]["uses"] = uses
        return told


def _by_example(count: Counter[int]) -> list[list[int]]:
    """The number of each example, and how often it was counted."""
    return [list(pair) for pair in sorted(count.items())]
