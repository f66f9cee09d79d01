"""Several ranks: processes that torchrun started, or the caller's own group, talking through torch.distributed."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from reticent.errors import RankError, ReticentError, SettingError
from reticent.inside.ranks import ALONE, Alike, Ranks

TIMEOUT = "RETICENT_TIMEOUT"
"""So many seconds a rank waits for the others; a rank whose process ends is noticed at once."""
PATIENCE = 600.0

T = TypeVar("T")


class Several(Ranks):
    """The ranks of a group of processes."""

    def __init__(self, group: Any):
        self._group = group
        self.rank, self.world = dist.get_rank(group), dist.get_world_size(group)

    def share(self, make: Callable[[], T]) -> T:
        """What the first rank makes, for all; if it cannot, all are told why."""
        found: list[Any] = [None]
        failure: BaseException | None = None
        if self.leads:
            try:
                found = [(None, make())]
            except BaseException as error:
                failure, found = error, [(_told(0, error), None)]
        try:
            self._talk(lambda: dist.broadcast_object_list(found, src=self._first, group=self._group))
        except RankError:
            if failure is None:
                raise
        if failure is not None:
            raise failure
        told, value = found[0]
        if told is not None:
            raise _error(*told)
        made: T = value
        return made

    @contextmanager
    def together(self, alike: Alike = tuple) -> Iterator[None]:
        """Nobody goes on after the block if somebody has failed in it, or has other bytes that must be alike."""
        try:
            yield
            mark = _mark(alike())
        except BaseException as error:
            with suppress(RankError):  # what went wrong here is to be told, not that nobody listened
                self._failures(error, 0)
            raise
        failed = self._failures(None, mark)
        if failed:
            raise RankError(f"{failed[0][1]} (rank {self.rank} stops with it)")

    def swapped(self, rows: Tensor) -> Tensor:
        """One row for each rank, for one row from each."""
        out = torch.empty_like(rows)
        self._talk(lambda: dist.all_to_all_single(out, rows, group=self._group))
        return out

    def gathered(self, row: Tensor) -> Tensor:
        """The rows of all ranks, one below the other."""
        out = row.new_empty((self.world, *row.shape))
        self._talk(lambda: dist.all_gather(list(out.unbind()), row.contiguous(), group=self._group))
        return out

    def told(self, thing: T) -> list[T]:
        """What every rank says, in their order."""
        said: list[Any] = [None] * self.world
        self._talk(lambda: dist.all_gather_object(said, thing, group=self._group))
        return said

    def alike(self, tensor: Tensor) -> None:
        """Let a tensor have the values that it has on the first rank."""
        values = tensor.detach().contiguous()
        self._talk(lambda: dist.broadcast(values, src=self._first, group=self._group))
        tensor.detach().copy_(values)

    @property
    def _first(self) -> int:
        return dist.get_global_rank(self._group, 0)

    def _failures(self, error: BaseException | None, mark: int) -> list[tuple[type[ReticentError], str]]:
        """What has gone wrong on any rank; one message says as well whether all have the same mark."""
        said_of_all = torch.tensor([error is not None, mark, -mark], dtype=torch.int64)
        self._talk(lambda: dist.all_reduce(said_of_all, op=dist.ReduceOp.MAX, group=self._group))
        failed, most, least = said_of_all.tolist()
        if not failed and most != -least:
            raise RankError(
                "the ranks have come apart: they no longer have the same draw and the same weights, so an example "
                "could count twice. Nothing was released with it. Change model and optimizer on all ranks alike or on "
                "none (rank 0 alone is told of progress), and use machines of one kind, which round alike"
            )
        if not failed:
            return []
        said = self.told(None if error is None else _told(self.rank, error))
        return [one for one in said if one is not None]

    def _talk(self, call: Callable[[], object]) -> None:
        try:
            call()
        except RuntimeError as error:  # what torch.distributed raises for lost connections and timeouts
            reason = re.sub(r"^\[[^]]*\] ", "", str(error)).split(". ")[0]
            raise RankError(
                f"rank {self.rank} of {self.world} has lost the others: one of them has ended, or nothing was heard "
                f"for {patience():g} seconds ({TIMEOUT} sets how many). Nothing is lost and nothing is charged "
                f"twice: start all ranks again, with resume=True (--resume). ({reason})"
            ) from error


def _mark(parts: Sequence[bytes | memoryview]) -> int:
    """A number for some bytes that others have with next to no chance."""
    found = hashlib.blake2b(digest_size=7)
    for part in parts:
        found.update(part)
    return int.from_bytes(found.digest(), "little")


def _told(rank: int, error: BaseException) -> tuple[type[ReticentError], str]:
    """What other ranks hear of an error: of ours the text, of any other its kind, for its text may be private."""
    if isinstance(error, ReticentError):
        return type(error), f"rank {rank} stopped: {error}"
    return RankError, f"rank {rank} stopped: {type(error).__name__}"


def _error(kind: type[ReticentError], text: str) -> ReticentError:
    try:
        return kind(text)
    except TypeError:  # one that is made of other things than its text
        return RankError(text)


def patience() -> float:
    """How many seconds a rank waits for the others.

    >>> patience()
    600.0
    """
    said = os.environ.get(TIMEOUT, str(PATIENCE))
    try:
        seconds = float(said)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise SettingError(f"{TIMEOUT} must be a number of seconds above 0, not {said!r}")
    return seconds


def launched() -> bool:
    """Whether torchrun has started this process beside others, or the caller has joined a group.

    >>> launched()
    False
    """
    if dist.is_available() and dist.is_initialized():
        return dist.get_world_size() > 1
    return "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1


def here() -> Ranks:
    """All ranks that were started together, or this process alone.

    >>> here().world
    1
    """
    _refuse_half_launched()
    if not launched():
        return ALONE
    if not dist.is_available():
        raise SettingError("this build of torch has no torch.distributed: run one process, without torchrun")
    backend, wait = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timedelta(seconds=patience())
    if not dist.is_initialized():
        try:
            store, rank, world_size = next(iter(rendezvous("env://", timeout=wait)))
            again = PrefixStore(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), store)  # not where the dead were
            dist.init_process_group(backend, store=again, rank=rank, world_size=world_size, timeout=wait)
        except (RuntimeError, ValueError) as error:
            raise RankError(
                f"the {os.environ['WORLD_SIZE']} ranks that torchrun speaks of did not meet within {patience():g} "
                f"seconds ({TIMEOUT} sets how many): start all of them by one torchrun on each machine, or unset "
                f"TORCHELASTIC_RUN_ID to run this process alone. ({str(error).splitlines()[0]})"
            ) from error
        atexit.register(_leave)
    world = dist.group.WORLD
    if world not in _KNOWN:
        _KNOWN.clear()
        _KNOWN[world] = Several(dist.new_group(backend=backend, timeout=wait))  # one of our own, to wait as long
    return _KNOWN[world]


def _refuse_half_launched() -> None:
    """Refuse to train alone what was meant as one of several: each would make a run of its own, of the same data."""
    said = os.environ.get("WORLD_SIZE", "1")
    joined = dist.is_available() and dist.is_initialized()
    if joined or "TORCHELASTIC_RUN_ID" in os.environ or "RANK" not in os.environ or said in ("", "1"):
        return
    raise SettingError(
        f"RANK and WORLD_SIZE={said} say that this process is one of several, but torchrun did not start it and it has "
        "joined no group: each would train a run of its own on the same examples. Start it by torchrun, or call "
        "torch.distributed.init_process_group() first; to run this process alone, unset RANK and WORLD_SIZE"
    )


def refuse_several(what: str) -> None:
    """Refuse what one process does by itself."""
    if launched():
        raise SettingError(f"{what} is for one process: start it without torchrun, or outside the group of processes")


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


_KNOWN: dict[Any, Several] = {}
