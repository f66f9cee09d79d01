"""The journal: a ledger's file as its one writer sees it; after a failed write it is mended before anything follows."""

from __future__ import annotations

import hashlib
import os
import warnings
import weakref
from pathlib import Path

from reticent.accounting.entries import VERSION, Book
from reticent.errors import FileWarning, ResumeError, unwritable


class Journal:
    """A file that is only ever added to. It is opened when the first line is to be written, never to be read.

    Promise: when `ready` returns, the file on disk is what memory says; when `append` returns, the line is there too.
    """

    def __init__(self, path: Path, found: Book):
        self._path, self._version = path, found.version
        self._end, self._sum = len(found.whole), hashlib.sha256(found.whole)
        self._left = found.left
        """What may stand after the end: the beginning of a line that was never followed by a release."""
        self._missing = b"\n" if found.whole and not found.whole.endswith(b"\n") else b""
        self._file: int | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is written yet."""
        return not self._end

    def ready(self) -> None:
        """Refuse, or mend, a file that is not what memory says: nothing may be released before."""
        if self._version != VERSION:
            raise ResumeError(
                f"{self._path} is a ledger of an older version: it can be read, but a run cannot go on with it. "
                "Start a new run in another folder."
            )
        try:
            opened = self._file is None
            file = self._open() if self._file is None else self._file
            size = self._size(file)
            if opened or self._left or size != self._end:
                self._mend(file)
        except OSError as error:
            raise unwritable(self._path, error) from error

    def append(self, line: bytes) -> None:
        """Write a whole line, to the disk itself; only after `ready`."""
        if self._file is None:
            raise ResumeError(f"{self._path} is not open: a line was to be written before the file was looked at")
        self._left = line  # from here on some of it may stand there, whatever happens: an error, or Ctrl-C
        try:
            _write(self._file, line)
            os.fdatasync(self._file)
        except OSError as error:
            raise unwritable(self._path, error) from error
        self._wrote(line)
        self._left = b""

    def _wrote(self, line: bytes) -> None:
        self._end += len(line)
        self._sum.update(line)

    def _open(self) -> int:
        """Open the file, and see that it and its name are on disk: what was found in it may be there in memory only."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        weakref.finalize(self, os.close, file)
        os.fdatasync(file)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._file = file
        return file

    def _size(self, file: int) -> int:
        """How long the file is; refuses if its name is gone, or another file's by now."""
        ours = os.fstat(file)
        try:
            same = os.path.samestat(ours, os.stat(self._path))
        except FileNotFoundError:
            same = False
        if not same:
            raise ResumeError(
                f"{self._path} was taken away while the run was going: nothing more is released. Bring it back and "
                "resume, or start a new run in another folder."
            )
        return ours.st_size

    def _mend(self, file: int) -> None:
        """Take away what a failed write left, and end the last line; anything else is not ours to touch."""
        there = self._path.read_bytes()
        rest = there[self._end :]
        if hashlib.sha256(there[: self._end]).digest() != self._sum.digest() or not self._left.startswith(rest):
            raise ResumeError(
                f"{self._path} is not what this run wrote: something else writes there, or it was changed. Nothing "
                "more is released. Bring it back as it was and resume, or start a new run in another folder."
            )
        said = []
        if rest:
            os.ftruncate(file, self._end)
            said.append(
                f"{len(rest)} bytes of a release that was not written whole, and so never made, were taken away"
            )
        if self._missing:
            _write(file, self._missing)
            said.append("the end of its last line was added")
        os.fdatasync(file)
        self._wrote(self._missing)
        self._left = self._missing = b""
        if said:
            warnings.warn(f"{self._path} was mended: {' and '.join(said)}", FileWarning, stacklevel=5)


def _write(file: int, data: bytes) -> None:
    while data:  # a full disk may take a part of it, and says so at the next try
        data = data[os.write(file, data) :]
