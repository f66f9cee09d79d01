"""Splits for attack experiments: parts that share no record, so that membership is the only difference."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from reticent.data.examples import Examples


@dataclass(frozen=True, eq=False)
class AttackSplit:
    """Members and non-members of the attacked model, and the same for the attacker's own (Salem et al. 2019)."""

    target_train: Examples
    target_test: Examples
    shadow_train: Examples
    shadow_test: Examples


def attack_split(examples: Examples, *, seed: int = 0) -> AttackSplit:
    """Shuffle and cut 2:1:2:1 into target training and test, shadow training and test.

    >>> import torch
    >>> parts = attack_split(Examples(torch.zeros(12, 1), torch.arange(12)))
    >>> len(parts.target_train), len(parts.target_test), len(parts.shadow_train), len(parts.shadow_test)
    (4, 2, 4, 2)
    """
    count = len(examples)
    order = np.random.RandomState(seed).permutation(count)
    parts = np.split(order, [count * sixths // 6 for sixths in (2, 3, 5)])
    return AttackSplit(*(examples.take(part) for part in parts))


def without_duplicates(examples: Examples, *, against: Examples | None = None) -> Examples:
    """The examples without later copies of the same input, nor any input that is in `against`.

    A non-member that is also a member would count as a wrong guess of a right attack.

    >>> import torch
    >>> unique = without_duplicates(Examples(torch.tensor([[1], [2], [1]]), torch.tensor([0, 1, 0])))
    >>> unique.x.tolist()
    [[1], [2]]
    """
    seen = set() if against is None else set(_digests(against.x))
    kept = []
    for row, digest in enumerate(_digests(examples.x)):
        if digest not in seen:
            seen.add(digest)
            kept.append(row)
    return examples.take(kept)


def _digests(x: Tensor) -> list[bytes]:
    """A digest of each row: comparing these takes little memory, whatever a row is."""
    rows = x.reshape(len(x), -1)
    return [hashlib.blake2b(row.numpy().tobytes(), digest_size=16).digest() for row in rows]
