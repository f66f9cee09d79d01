"""Files as they are written everywhere: whole or not at all, on disk, under a name of their own until then.

What must not be published lies in `private/`, readable by its owner only; everything else of a finished run may be.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from reticent.errors import unwritable

PRIVATE = "private"
"""The folder, in that of a run, for what must not be published."""
README = "README.txt"
_WARNING = b"""What lies here must not be published: it tells of examples, or holds the key of a run that is not over.
In the folder of a finished run, all the rest is covered by the guarantee on its card, or was declared public.
"""
_UNFINISHED = ".new"


def replace_file(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file so that a crash leaves either the old one or the new one, whole and on disk.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp(), "a.txt"); replace_file(place, b"new"); place.read_bytes()
    b'new'
    """
    with replacing(path, mode=mode) as file:
        file.write(data)


@contextmanager
def replacing(path: Path, *, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A file to write, which takes its name when all is written; two at once do not meet: the later one stays."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_UNFINISHED}")
    try:
        with os.fdopen(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        sync(path.parent)  # or a power cut could bring the old name back
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def append(path: Path, end: int, data: bytes) -> int:
    """Add to a file of which so much is ours, and answer with how much that is then; `sync` puts it on disk.

    What an earlier try left behind the end is written over.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp(), "a.jsonl"); append(place, append(place, 0, b"1\\n"), b"2\\n")
    4
    """
    try:
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file:
            file.truncate(end)
            file.seek(end)
            file.write(data)
    except OSError as error:
        raise unwritable(path, error) from error
    return end + len(data)


def remove(path: Path) -> None:
    """Take a file away, if it is there."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error


def clear_unfinished(folder: Path) -> None:
    """Take away what processes that were killed left half written; only for whoever holds the folder."""
    for path in folder.glob(f".*{_UNFINISHED}"):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def make_folder(path: Path, *, mode: int = 0o777) -> None:
    """Make a folder, and those above it, if it is not there; its name is on disk, and theirs."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    try:
        for place in reversed(missing):
            place.mkdir(mode=mode if place == path else 0o777, exist_ok=True)
        for place in missing or [path]:
            sync(place.absolute().parent)
        if not path.is_dir():
            raise NotADirectoryError(20, "it is a file")
    except OSError as error:
        raise unwritable(path, error) from error


def private_folder(folder: Path) -> Path:
    """The place for what must not be published, which says so; only the owner may look into it.

    >>> import tempfile
    >>> place = private_folder(Path(tempfile.mkdtemp())); oct(place.stat().st_mode)[-3:]
    '700'
    """
    path = folder / PRIVATE
    if not (path / README).exists():
        make_folder(path, mode=0o700)
        replace_file(path / README, _WARNING)
    return path


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read."""
    replace_file(path, data, mode=0o600)


def stored_at(folder: Path, name: str, before: str | None = None) -> Path:
    """Where something private of a run is kept: in `private/`, or where older versions had it, if it is there.

    >>> stored_at(Path("runs/a"), "audit.json").as_posix()
    'runs/a/private/audit.json'
    """
    old, new = folder / (before or name), folder / PRIVATE / name
    return old if old.exists() and not new.exists() else new


def sync(path: Path) -> None:
    """Put a file, or the names in a folder, on disk; what is not there, or may not be read, is not ours to put."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except (PermissionError, FileNotFoundError):
        return
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        os.fsync(handle)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        os.close(handle)
