"""Examples of the next draw, fetched while this one is computed with."""

from __future__ import annotations

from typing import Any

from reticent.inside.ahead import Ahead


def ahead(examples: Any, *, workers: int = 1) -> Ahead:
    """The same examples, in any form that `rt.fit` takes, where workers fetch those of the next draw in time.

    Arrays are read by threads, a Dataset by processes: it must be picklable, as for a DataLoader that does not fork.
    Nothing that is released or charged depends on it.

    >>> import torch
    >>> len(ahead((torch.zeros(5, 2), torch.arange(5)), workers=2))
    5
    """
    return Ahead(examples, workers)
