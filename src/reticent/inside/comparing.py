"""Comparing: whether ranks hold the examples that they must, before the first is looked at for an answer.

Who looks at an example depends on how many were drawn before it. So ranks that hold other examples at the same places
could look at one person twice, and one person more would move others from one version of themselves to the other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reticent.errors import SettingError
from reticent.inside.persons import Persons
from reticent.inside.randomness import Randomness, torch_seeded
from reticent.inside.ranks import Ranks
from reticent.inside.shares import Shard
from reticent.inside.store import Store, as_bytes, leaves

MOST_ROWS, MOST_BYTES = 2**20, 2**31
"""Up to so many all examples are compared: that is read in less than a minute, and once in a run."""
SOME = 2**12
"""Of more, so many that nobody can foresee."""

APART = "assumes that no example is in the shards of two ranks, where it would count twice"
THE_SAME = f"assumes that all ranks hold the same examples in the same order: {SOME} of them were compared"
ORDER = (
    "an example that both hold at different places would count twice. Let every rank read the same examples in "
    "the same order (a shuffle or a random split needs a seed), or say with shard which ones it holds"
)


def compared(examples: Store, randomness: Randomness, ranks: Ranks) -> tuple[str, ...]:
    """Refuse examples that differ between ranks, or shards that do not; what is left to be assumed of them.

    >>> compared(..., Randomness.from_seed(0), Ranks())
    ()
    """
    if ranks.world == 1:
        return ()
    if isinstance(examples, Shard):
        _refuse_same(examples, randomness, ranks)
        return (APART,)
    rows = examples.everything() if isinstance(examples, Persons) else examples
    size, each = len(rows), sum(len(as_bytes(part)) for part in leaves(rows.take(np.zeros(1, np.int64))))
    index, left = np.arange(size), tuple[str, ...]()
    if size > MOST_ROWS or size * each > MOST_BYTES:
        index, left = randomness.stream("compare").choice(size, min(size, SOME), replace=False), (THE_SAME,)
    ranks.refuse_other(_sealed(rows, index, randomness), "what the examples are", ORDER)
    return left


def _refuse_same(shard: Shard, randomness: Randomness, ranks: Ranks) -> None:
    """Refuse shards that are the same rows under other numbers, as where every rank has read the whole of a file."""
    index = np.arange(shard.first, shard.held.stop)[:SOME]
    seals = ranks.told(_sealed(shard, index, randomness) if len(index) > 1 else str(ranks.rank))
    with ranks.together():
        twins = [rank for rank, seal in enumerate(seals) if seal == seals[ranks.rank]]
        if len(twins) > 1:
            raise SettingError(
                f"ranks {twins[0]} and {twins[1]} hold the same examples, and shard says that they are different ones: "
                "each would count twice. Give each rank its own rows, or all rows to each without shard"
            )


def _sealed(rows: Store, index: NDArray[np.int64], randomness: Randomness) -> str:
    """A keyed fingerprint of these, one after the other; chance in a dataset falls alike on all ranks."""
    parts = np.array_split(index, -(-len(index) // rows.at_once))
    with torch_seeded(int(randomness.stream("compare", "chance").integers(2**63))):
        seals = [randomness.seal(*map(as_bytes, leaves(rows.take(part)))).encode() for part in parts]
    return randomness.seal(str(len(index)).encode(), *seals)
