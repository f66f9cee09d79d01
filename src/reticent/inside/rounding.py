"""Rounding: how much further one example moves a sum than it would in real arithmetic; found by search, with a margin.

With one example less the others stand elsewhere in a sum, and their last digits are rounded otherwise. The factors
here are public: they follow from the declared batch size and the type of the sum.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from reticent.gradients.forms.outer import FEW_ROWS
from reticent.inside.task import Flat

COVERED_BY_TEST = (
    "rounding in float32 moves a sum by no more than the noise makes up for: a bound by adversarial search with a "
    "margin, not by proof"
)
"""What a guarantee says of it."""

LONGEST = 2560
"""Examples, or rows of persons, that are added up in float32 at most; longer sums go on in float64."""


def slack(batch_size: float, summed_in: torch.dtype, *, by_person: bool = False) -> float:
    """The factor on the sensitivity of a sum over a draw of about so many examples.

    In units of the last digit an example, climbs found up to 6 for 512 examples and 9 for 2048 (the slow test in
    tests/inside/test_rounding.py is one); other seeds found a third of that, so none has found the end, and the factors
    are for three times the most. Sums in float64 were not searched: there only the terms'
    own digits change, for the norms of three networks by at most 3.7 units. Up to 16 rows of a person are added one by
    one, so that a sum of persons may be rounded as often as one of so many more examples.

    >>> round(slack(256, torch.float32), 6), round(slack(2048, torch.float32), 4), round(slack(2048, torch.float64), 5)
    (1.000374, 1.0036, 1.00058)
    """
    drawn = batch_size + 8 * math.sqrt(batch_size) + 8  # no draw is larger, but for one chance in 10^12
    terms = drawn * FEW_ROWS if by_person else drawn
    units = 4.0 if summed_in == torch.float64 else max(16.0, min(terms, LONGEST) / 96)
    return 1 + 2.0**-24 * units * drawn


class Running:
    """A running sum of gradients: a micro-batch in the parameters' own type, one after another in float64."""

    def __init__(self, flat: Flat):
        self._part = flat.kept.like(flat.vector).zero_()
        self._total: Tensor | None = None
        self._begun = False
        self.views = flat.views(self._part)
        """Where the gradients of the micro-batch under way are added."""

    def begin(self) -> None:
        """The next micro-batch begins: put away what the last one gave."""
        if self._begun:
            if self._total is None:
                self._total = torch.zeros_like(self._part, dtype=torch.float64)
            self._total += self._part
            self._part.zero_()
        self._begun = True

    def sum(self) -> Tensor:
        """All of it, in the parameters' type; nothing can be added any more, and a long sum is not copied."""
        if self._total is not None:
            self._part.copy_(self._total.add_(self._part))
            self._total = None
        return self._part


def at_once(examples: int, limit: int | None, rows: int = 1) -> int | None:
    """How many of so many examples to add up at once: as many as allowed, in parts of equal length.

    Limits are for rows, of which an example may have several.

    >>> at_once(2000, None), at_once(5000, None), at_once(5000, 100), at_once(5000, 100, rows=8)
    (None, 2500, 100, 12)
    """
    most = max(1, LONGEST // rows)
    limit = None if limit is None else max(1, limit // rows)
    if limit is None and examples <= most:
        return None
    longest = min(most, limit or most)
    return limit if limit == longest else math.ceil(examples / math.ceil(examples / longest))
