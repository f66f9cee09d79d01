"""Fuzzing: every reader is given mutated bytes; it answers, or raises an error of ours, and nothing else.

Mutations are guided by coverage: what reaches lines of ours that nothing has reached before is mutated further.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import reticent
from reticent.errors import ReticentError
from soak.tally import Tally

OURS = str(Path(reticent.__file__).parent)
WORDS = (
    b"\r",
    b"\n",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"NaN",
    b"1e999",
    b"-1",
    b"null",
    b"{}",
    b"[]",
    b'"',
    b"\\u0000",
)
NUMBERS = (0, 1, 0x7F, 0x80, 0xFF)


@dataclass(frozen=True)
class Reader:
    """Something that reads a file: its name, whole content that it reads, and how it is read."""

    name: str
    seeds: tuple[bytes, ...]
    read: Callable[[Path], object]
    file: str
    """What the file is called."""


def soak_fuzz(readers: list[Reader], folder: Path, each: int, *, seed: int = 0, guided: int = 8) -> Tally:
    """So many mutated files for each reader; coverage is looked at in one of `guided`."""
    tally = Tally("fuzz")
    for reader in readers:
        rng = random.Random(f"{seed} {reader.name}")
        kept, seen, path = list(reader.seeds), set[tuple[str, int]](), folder / reader.file
        for number in range(each):
            raw = mutate(rng.choice(kept), kept, rng)
            path.write_bytes(raw)
            before = len(seen)
            with lines_into(seen) if number % guided == 0 else _nothing():
                tally.add(reader.name, problem(reader.read, path))
            if len(seen) > before and len(kept) < 500:
                kept.append(raw)
        path.write_bytes(reader.seeds[0])
    return tally


def problem(read: Callable[[Path], object], path: Path) -> str | None:
    """What came out of a reader that should not have."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(path)
    except ReticentError as error:
        return None if str(error) else "an error without words"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]} for {path.read_bytes()[:80]!r}"
    return None


def mutate(raw: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """A few changes: bits, bytes, cuts, doubles, words, pieces of others."""
    found = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        place, length = rng.randrange(len(found) + 1), rng.choice((1, 2, 4, 16, 64))
        match rng.randrange(8):
            case 0 if found:
                found[place % len(found)] ^= 1 << rng.randrange(8)
            case 1 if found:
                found[place % len(found)] = rng.choice(NUMBERS)
            case 2:
                del found[place:]
            case 3:
                del found[place : place + length]
            case 4:
                found[place:place] = rng.choice(WORDS)
            case 5:
                found[place:place] = found[place : place + length]
            case 6:
                other = rng.choice(others)
                start = rng.randrange(len(other) + 1)
                found[place : place + length] = other[start : start + length]
            case 7:
                found[place : place + length] = rng.randbytes(min(length, 16))
    return bytes(found)


@contextmanager
def lines_into(seen: set[tuple[str, int]]) -> Iterator[None]:
    """Note every line of ours that is reached."""

    def inside(frame: FrameType, _event: str, _arg: Any) -> Any:
        seen.add((frame.f_code.co_filename, frame.f_lineno))
        return inside

    def entered(frame: FrameType, _event: str, _arg: Any) -> Any:
        return inside if frame.f_code.co_filename.startswith(OURS) else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def _nothing() -> Iterator[None]:
    yield
