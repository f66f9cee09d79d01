"""Ranks: the processes that make one run together; a process by itself is the simplest case.

Everything a run does with others is here: one rank leads and writes, sums are added in the order of shares whoever made
them, and of long sums each rank holds, seals and noises only some blocks until the noisy ones are put together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor

from reticent.errors import SettingError
from reticent.inside.cores import each

BLOCK = 2**16
"""Numbers that are sealed and noised as one, each block from a stream of its own: anywhere, in any order."""

T = TypeVar("T")

Alike = Callable[[], Sequence[bytes | memoryview]]
"""What must be the same on every rank, made only where there are several."""


class Ranks:
    """A process by itself: what it says it hears.

    >>> alone = Ranks()
    >>> alone.share(lambda: 7), alone.mine(200_000), alone.whole(torch.ones(2))
    (7, slice(0, 200000, None), tensor([1., 1.]))
    """

    rank = 0
    world = 1

    # -- what ranks say to one another: `Several` has these for more than one -------------------------------------

    def share(self, make: Callable[[], T]) -> T:
        """What the first rank makes, for all; if it cannot, all are told why."""
        return make()

    @contextmanager
    def together(self, alike: Alike = tuple) -> Iterator[None]:  # noqa: ARG002 - one is like itself
        """Nobody goes on after the block if somebody has failed in it, or has other bytes that must be alike."""
        yield

    def swapped(self, rows: Tensor) -> Tensor:
        """One row for each rank, for one row from each."""
        return rows

    def gathered(self, row: Tensor) -> Tensor:
        """The rows of all ranks, one below the other."""
        return row[None]

    def told(self, thing: T) -> list[T]:
        """What every rank says, in their order."""
        return [thing]

    def alike(self, tensor: Tensor) -> None:
        """Let a tensor have the values that it has on the first rank."""

    # -- what follows from it ---------------------------------------------------------------------------------------

    @property
    def leads(self) -> bool:
        """Whether this is the rank that writes, prints and charges."""
        return self.rank == 0

    def only(self, thing: T) -> T | None:
        """A thing that is for the first rank only, such as a folder to write to."""
        return thing if self.leads else None

    def in_turn(self, act: Callable[[], T]) -> T:
        """First the rank that leads, to its end; then the others."""
        led: list[T] = []
        self.share(lambda: led.append(act()))
        return led[0] if led else act()

    def refuse_other(self, value: object, name: str, remedy: str) -> None:
        """Refuse to go on where this rank has another value than the first."""
        theirs = self.share(lambda: value)
        with self.together():
            if theirs != value:
                raise SettingError(f"{name} differs between rank 0 and rank {self.rank}: {remedy}")

    def shares(self, count: int) -> range:
        """Which of so many shares of the work are for this rank."""
        return range(self.rank, count, self.world)

    def mine(self, size: int) -> slice:
        """Which of so many numbers this rank holds of a long sum, in whole blocks."""
        part = self._part(size)
        return slice(min(size, self.rank * part), min(size, (self.rank + 1) * part))

    def added(self, parts: Sequence[Tensor], shares: int) -> Tensor:
        """The sum over all shares, of which this rank has made its own; of a long one, only what is `mine` is there.

        Added up in float64 in the order of the shares, and rounded to their own type once: the number of ranks changes
        no digit, the number of shares only the last. A rank without a share gives any part of the right form.
        """
        if self.world == shares == 1:
            return parts[0]
        form, size, total = parts[0], parts[0].numel(), self._total(parts, shares)
        if size <= BLOCK:
            return total.to(form.dtype).reshape(form.shape)
        here = self.mine(size)
        out = torch.full((size,), math.nan, dtype=form.dtype, device=form.device)  # what is not here must not be used
        out[here] = total[: here.stop - here.start].to(form.dtype)
        return out.reshape(form.shape)

    def _total(self, parts: Sequence[Tensor], shares: int) -> Tensor:
        """The sum in float64, of a long one what is mine; what was sent for it is let go when it is there."""
        total = torch.zeros(0)
        for wave in range(math.ceil(shares / self.world)):
            part = parts[min(wave, len(parts) - 1)].detach().reshape(-1)
            rows = self.gathered(part) if len(part) <= BLOCK else self.swapped(self._rows(part))
            for row in rows[: shares - wave * self.world]:
                total = total.add_(row) if len(total) else row.double()
        return total

    def whole(self, value: Tensor) -> Tensor:
        """All of a value of which each rank has what is `mine`."""
        if self.world == 1:
            return value
        flat = value.detach().reshape(-1)
        return self._joined(flat, self.mine(flat.numel()), self._part(flat.numel())).reshape(value.shape)

    def by_block(self, size: int, make: Callable[[slice], bytes]) -> list[bytes]:
        """What is made of each block of so many numbers by the rank that holds it, for all; of one length each."""
        here = self.mine(size)
        starts = range(here.start, here.stop, BLOCK)
        own = [b""] * len(starts)

        def block(number: int) -> None:
            own[number] = make(slice(starts[number], min(starts[number] + BLOCK, here.stop)))

        each(len(starts), block)
        if self.world == 1:
            return own
        length = len(make(slice(0, 0)))
        made = torch.frombuffer(bytearray(b"".join(own)), dtype=torch.uint8) if own else torch.zeros(0)
        flat = torch.zeros(math.ceil(size / BLOCK) * length, dtype=torch.uint8)
        place = slice(here.start // BLOCK * length, here.start // BLOCK * length + len(made))
        flat[place] = made.to(torch.uint8)
        data = self._joined(flat, place, self._part(size) // BLOCK * length).numpy().tobytes()
        return [data[at : at + length] for at in range(0, len(data), length)]

    def _part(self, size: int) -> int:
        """How many numbers each rank holds of so many: whole blocks, fewer or none where they run out."""
        return math.ceil(math.ceil(size / BLOCK) / self.world) * BLOCK

    def _rows(self, flat: Tensor) -> Tensor:
        """A vector cut into one row for each rank, with zeros at its end."""
        rows = flat.new_zeros(self.world * self._part(len(flat)))
        rows[: len(flat)] = flat
        return rows.reshape(self.world, -1)

    def _joined(self, flat: Tensor, place: slice, part: int) -> Tensor:
        row = flat.new_zeros(min(part, len(flat)))
        row[: place.stop - place.start] = flat[place]
        return self.gathered(row).reshape(-1)[: len(flat)]


ALONE = Ranks()
"""This process by itself."""
