"""Datasets that tests send to the processes that fetch ahead: importable by name."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import Dataset

from reticent.inside import randomness

Pair = tuple[Tensor, Tensor]


class Records(Dataset[Pair]):
    """Pairs, one at a time."""

    def __init__(self, pair: Pair):
        self.pair = pair

    def __len__(self) -> int:
        return len(self.pair[0])

    def __getitem__(self, number: int) -> Pair:
        return self.pair[0][number], self.pair[1][number]


class Several(Records):
    """Pairs, several at a time."""

    def __getitems__(self, numbers: list[int]) -> list[Pair]:
        return [self[number] for number in numbers]


class Torn(Records):
    """One of them cannot be read."""

    def __getitem__(self, number: int) -> Pair:
        if number == 17:
            raise OSError("the file of record 17 is torn")
        return super().__getitem__(number)


class Deadly(Records):
    """One of them ends whoever reads it, but for the process of the run itself."""

    def __getitem__(self, number: int) -> Pair:
        if number == 17 and multiprocessing.parent_process() is not None:
            os._exit(1)
        return super().__getitem__(number)


class Shaken(Records):
    """Something is left to chance in each."""

    def __getitem__(self, number: int) -> Pair:
        return self.pair[0][number] + torch.randn(4), self.pair[1][number]


class Noted(Records):
    """Notes who reads: the process, its parent, and how many keys there are in it."""

    def __init__(self, pair: Pair, notes: Path):
        super().__init__(pair)
        self.notes = notes

    def __getitem__(self, number: int) -> Pair:
        (self.notes / f"{os.getpid()} {os.getppid()} {len(randomness._HOLDERS)}").touch()
        return super().__getitem__(number)
