"""Crowds: batches as large as real ones, of as many kinds of rows as a model takes, to see a row among others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from reticent.gradients.batches import Batch, chosen, map_tensors, size, tensors
from reticent.gradients.probes import made_up

# Loss functions leave out labels of this value; the number of those that count is often taken over the batch.
IGNORED = -100
# The first crowd is as large as asked for; other kinds of rows are tried in smaller ones.
FEWER = 16

# Whole numbers are not tried beyond this one.
LARGEST = 2**17

Runs = Callable[[Batch], bool]


def crowds(base: Batch, most: int, runs: Runs) -> Iterator[Batch]:
    """Batches made after a few rows that the model takes: one of `most` rows, then smaller ones of other kinds.

    >>> [size(crowd) for crowd in crowds(torch.rand(4, 3), 64, lambda batch: True)]
    [64, 16, 16, 16, 16]
    """
    few = min(most, FEWER)
    given = chosen(base, torch.arange(most) % size(base))
    yield made_up(base, most) if runs(made_up(base, 2)) else given
    some = chosen(given, torch.arange(few))
    wide = _widened(base, few, runs)
    yield from (_ragged(wide), wide, _louder(some), some)
    for place, part in enumerate(tensors(wide)):
        if not part.is_floating_point() and part.device.type == "cpu":
            yield _changed(wide, place, _with_ignored)


def _changed(batch: Batch, place: int, change: Callable[[Tensor], Tensor]) -> Batch:
    """Change one tensor of a batch."""
    parts = iter(range(len(list(tensors(batch)))))
    return map_tensors(batch, lambda part: change(part) if next(parts) == place else part)


def _widened(base: Batch, rows: int, runs: Runs) -> Batch:
    """Whole numbers over the range that the model takes, each tensor apart: words, classes, lengths."""
    crowd, two = (chosen(base, torch.arange(count) % size(base)) for count in (rows, 2))
    for place, part in enumerate(tensors(base)):
        if part.is_floating_point() or part.dtype == torch.bool or part.device.type != "cpu":
            continue  # elsewhere a number out of range may end the process

        def takes(number: int, place: int = place) -> bool:
            return runs(_changed(two, place, partial(torch.full_like, fill_value=number)))

        low = 0 if takes(0) else 1
        high = _largest(takes, low, min(LARGEST, int(torch.iinfo(part.dtype).max)))
        tried = _changed(crowd, place, _between(low, high))
        if runs(tried):
            crowd = tried
    return crowd


def _largest(takes: Callable[[int], bool], low: int, most: int) -> int:
    """The largest number that the model takes, found by doubling and halving."""
    step = 1
    while low + step <= most and takes(low + step):
        low, step = low + step, 2 * step
    while step > 1:
        step //= 2
        if low + step <= most and takes(low + step):
            low += step
    return low


def _between(low: int, high: int) -> Callable[[Tensor], Tensor]:
    rng = torch.Generator().manual_seed(high)
    return lambda part: torch.randint(low, high + 1, part.shape, generator=rng).to(part.dtype)


def _louder(crowd: Batch) -> Batch:
    """Floating numbers of other sizes and signs, row by row."""
    rng = torch.Generator().manual_seed(1)

    def change(part: Tensor) -> Tensor:
        if not part.is_floating_point():
            return part
        scale = torch.logspace(-2, 1, len(part)).view(-1, *(1,) * (part.dim() - 1))
        return (torch.randn(part.shape, generator=rng) * scale).to(part.device, part.dtype)

    return map_tensors(crowd, change)


def _tails(part: Tensor) -> Tensor:
    """Which entries come after each row's own end; the first row is full."""
    length = part.shape[1]
    ends = torch.randint(1, max(length, 1) + 1, (len(part),), generator=torch.Generator().manual_seed(2))
    ends[0] = length
    tails = torch.arange(length) >= ends[:, None]
    return tails.view(*tails.shape, *(1,) * (part.dim() - 2)).to(part.device)


def _ragged(crowd: Batch) -> Batch:
    """Rows that end early, as padded sequences do."""
    return map_tensors(crowd, lambda part: part.masked_fill(_tails(part), 0) if part.dim() > 1 else part)


def _with_ignored(part: Tensor) -> Tensor:
    if part.dtype in (torch.bool, torch.uint8):
        return part
    if part.dim() > 1:
        return part.masked_fill(_tails(part), IGNORED)
    return torch.where(torch.arange(len(part)) % 2 == 1, torch.full_like(part, IGNORED), part)
