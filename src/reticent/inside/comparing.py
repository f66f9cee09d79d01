"""Comparing: whether ranks hold the examples that they must, before the first is looked at for an answer.

Who looks at an example depends on how many were drawn before it. So ranks that hold other examples at the same places
could look at one person twice, and one person more would move others from one version of themselves to the other.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

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
FEW = 16
"""Rows in two shards that are taken for people with the same values."""

APART = "no example is in the shards of two ranks, where it would count twice"
THE_SAME = f"all ranks hold the same examples in the same order: {SOME} of them were compared"
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
        _refuse_overlap(examples, randomness, ranks)
        return (APART,)
    rows = examples.everything() if isinstance(examples, Persons) else examples
    size, each = len(rows), sum(len(as_bytes(part)) for part in leaves(rows.take(np.zeros(1, np.int64))))
    index, left = np.arange(size), tuple[str, ...]()
    if size > MOST_ROWS or size * each > MOST_BYTES:
        index, left = randomness.stream("compare").choice(size, min(size, SOME), replace=False), (THE_SAME,)
    ranks.refuse_other(_sealed(rows, index, randomness), "what the examples are", ORDER)
    return left


def _refuse_overlap(shard: Shard, randomness: Randomness, ranks: Ranks) -> None:
    """Refuse shards that have more rows in common than people with the same values explain.

    Were equal rows spread by chance, as many pairs would lie in one shard as in two, times one less than the shards.
    """
    every = ranks.told(_marks(shard, randomness))
    with ranks.together():
        distinct = [np.unique(marks) for marks in every]
        within = sum(len(marks) - len(once) for marks, once in zip(every, distinct, strict=True))
        across = sum(map(len, distinct)) - len(np.unique(np.concatenate(distinct)))
        if across > FEW + 10 * (ranks.world - 1) * (within + 1):
            raise SettingError(
                "many rows are in the shards of two ranks, where each would count twice. Give each rank its own rows, "
                "or all rows to each without shard"
            )


def _marks(shard: Shard, randomness: Randomness) -> NDArray[np.uint64]:
    """A keyed number for each row of a shard, equal for equal rows; none, if there is too much to read."""
    key, found = randomness.stream("compare", "rows").bytes(32), bytearray()
    for part in np.array_split(np.arange(shard.first, shard.held.stop), -(-len(shard.store) // shard.at_once)):
        rows = [as_rows(one) for one in leaves(shard.take(part))]
        if len(shard.store) > min(MOST_ROWS, MOST_BYTES // sum(one.shape[1] for one in rows)):
            return np.zeros(0, np.uint64)
        for row in np.concatenate(rows, axis=1):
            found += blake2b(row.tobytes(), key=key, digest_size=8).digest()
    return np.frombuffer(bytes(found), np.uint64)


def as_rows(part: Tensor) -> NDArray[np.uint8]:
    """The bytes of each example."""
    return np.frombuffer(as_bytes(part), np.uint8).reshape(len(part), -1)


def _sealed(rows: Store, index: NDArray[np.int64], randomness: Randomness) -> str:
    """A keyed fingerprint of these, one after the other; chance in a dataset falls alike on all ranks."""
    parts = np.array_split(index, -(-len(index) // rows.at_once))
    with torch_seeded(randomness.whole("compare", "chance")):
        seals = [randomness.seal(*map(as_bytes, leaves(rows.take(part)))).encode() for part in parts]
    return randomness.seal(str(len(index)).encode(), *seals)
