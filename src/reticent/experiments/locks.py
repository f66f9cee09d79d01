"""Locks: a folder belongs to one process at a time, and to nobody as soon as that process is gone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reticent.errors import unwritable
from reticent.files import make_folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Wait until nobody else is at work in the folder, and keep others out until done.

    The system lets go of the lock when the process ends, however it ends.
    """
    make_folder(folder)
    try:
        handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
