"""Holding a folder: one run at a time goes on in it, for two would use the same randomness twice."""

from __future__ import annotations

import fcntl
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from threading import Thread

from reticent.errors import ResumeError

_HELD: dict[tuple[int, int], weakref.ref[Hold]] = {}
"""Who holds a folder in this process, by device and inode."""


class Hold:
    """A lock on a folder that the system lets go of when the process ends, however it ends.

    A second run in the same process takes the folder over, and the first one can not go on; one in another process is
    refused with the number of the process that holds it.
    """

    def __init__(self, folder: Path):
        place = folder.stat()
        key = place.st_dev, place.st_ino
        before = _HELD[key]() if key in _HELD else None
        if before is not None:
            before.release(lost=True)
        self._lost = False
        self._worker: Thread | None = None
        handle = os.open(folder / "run.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
        except BlockingIOError as error:
            holder = os.read(handle, 32).decode(errors="replace").strip() or "another one"
            os.close(handle)
            raise ResumeError(
                f"{folder} is in use by process {holder}: two runs in it would use the same randomness twice. Wait for "
                "it to end, or stop it first"
            ) from error
        except OSError:
            os.close(handle)  # or nobody could hold it any more, this process least of all
            raise
        self._close = weakref.finalize(self, os.close, handle)
        _HELD[key] = weakref.ref(self)

    def release(self, *, lost: bool = False) -> None:
        """Let go of the folder; `lost`: because another run has taken it over."""
        self.wait()
        self._lost = self._lost or lost
        self._close()

    def meanwhile(self, work: Callable[[], None]) -> None:
        """Do something in the folder while the run goes on; nobody else gets the folder before it is done."""
        self._worker = Thread(target=work)
        self._worker.start()

    def busy(self) -> bool:
        """Whether that is being done."""
        return self._worker is not None and self._worker.is_alive()

    def wait(self) -> None:
        """Wait until it is done."""
        if self._worker is not None:
            self._worker.join()
            self._worker = None

    def refuse_if_lost(self) -> None:
        """Refuse to go on where another run of this process does."""
        if self._lost:
            raise ResumeError("another run has taken this folder over: go on with that one, not with both")
