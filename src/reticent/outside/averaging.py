"""Averaging: the mean of the last weights is often better than the last, and free, since all of them are released."""

from __future__ import annotations

from torch import Tensor

from reticent.errors import SettingError


class TailAverage:
    """The mean of the weights after each of the last rounds, a given share of all of them.

    >>> import torch
    >>> mean = TailAverage(share=0.5, rounds=4)
    >>> for number, weight in enumerate([9.0, 9.0, 1.0, 3.0], start=1):
    ...     mean.take(number, torch.tensor([weight]))
    >>> mean.value
    tensor([2.])
    """

    def __init__(self, share: float, rounds: int):
        if not 0 <= share <= 1:
            raise SettingError(f"average_last is the share of rounds that are averaged, between 0 and 1, not {share}")
        self.share, self.rounds = share, rounds
        self.first = rounds - round(share * rounds) + 1
        self.count = 0
        self.value: Tensor | None = None

    def take(self, number: int, weights: Tensor) -> None:
        """Take in the weights after round `number`; after the last one they become the mean."""
        if number < self.first:
            return
        self.count += 1
        if self.value is None:
            self.value = weights.clone()
        else:
            self.value += (weights - self.value) / self.count
        if number == self.rounds:
            weights.copy_(self.value)
