"""A disk that fails: at its n-th operation the process is killed, the power goes, or an error comes back."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

OPERATIONS = ("open", "write", "fsync", "fdatasync", "replace", "ftruncate", "unlink", "mkdir")
KINDS = ("kill before", "kill after", "torn write", "power cut", "full", "broken")
ERRORS = {"full": errno.ENOSPC, "broken": errno.EIO}
KILLED = 9


class Disk:
    """Counts operations on files below a folder; the one with the chosen number fails in the chosen way.

    It remembers what of the folder is surely on disk: the content of a file when it was last synced, and the names in a
    folder when that was. A power cut leaves these, and nothing else.
    """

    def __init__(self, folder: Path, number: int | None, kind: str):
        self.folder, self.number, self.kind = folder, number, kind
        self.count = 0
        self._real = {name: getattr(os, name) for name in OPERATIONS}
        self._content: dict[int, bytes] = {}
        self._names: dict[Path, dict[str, int]] = {}

    @contextmanager
    def installed(self) -> Iterator[Disk]:
        """Take the place of the system's own operations."""
        for name in OPERATIONS:
            setattr(os, name, self._failing(name))
        try:
            yield self
        finally:
            for name, real in self._real.items():
                setattr(os, name, real)

    def _failing(self, name: str) -> Callable[..., Any]:
        real = self._real[name]

        def operation(place: Any, *rest: Any, **named: Any) -> Any:
            path = self._path(place)
            if path is None:
                return real(place, *rest, **named)
            self.count += 1
            if self.count == self.number:
                return self._fail(name, real, path, place, *rest, **named)
            answer = real(place, *rest, **named)
            self._synced(name, path)
            return answer

        return operation

    def _path(self, place: Any) -> Path | None:
        try:
            path = Path(os.readlink(f"/proc/self/fd/{place}") if isinstance(place, int) else os.path.abspath(place))
        except (OSError, TypeError):
            return None
        return path if path.is_relative_to(self.folder) else None

    def _synced(self, name: str, path: Path) -> None:
        if name not in ("fsync", "fdatasync"):
            return
        if path.is_dir():
            self._names[path] = {entry.name: entry.stat().st_ino for entry in path.iterdir()}
        elif path.exists():
            self._content[path.stat().st_ino] = path.read_bytes()

    def _fail(self, name: str, real: Callable[..., Any], path: Path, *words: Any, **named: Any) -> Any:
        if self.kind in ERRORS:
            if name == "write":
                real(words[0], words[1][: len(words[1]) // 2])
            raise OSError(ERRORS[self.kind], os.strerror(ERRORS[self.kind]))
        if self.kind == "kill after":
            real(*words, **named)
        if self.kind == "torn write" and name == "write":
            real(words[0], words[1][: len(words[1]) // 2])
        if self.kind == "power cut":
            real(*words, **named)
            self._synced(name, path)
            self._cut()
        os._exit(KILLED)

    def _cut(self) -> None:
        """Leave what is surely on disk: synced names only, and files as they were when last synced."""
        for name, real in self._real.items():
            setattr(os, name, real)
        for folder in sorted((path for path in [self.folder, *self.folder.rglob("*")] if path.is_dir()), reverse=True):
            known = self._names.get(folder)
            for entry in list(folder.iterdir()):
                if stat.S_ISDIR(entry.stat().st_mode):
                    continue
                inode = entry.stat().st_ino
                if known is None or entry.name not in known:
                    entry.unlink()
                elif known[entry.name] != inode:  # the new one has taken its place in memory only
                    if known[entry.name] in self._content:
                        entry.write_bytes(self._content[known[entry.name]])
                    else:
                        entry.unlink()
                else:
                    entry.write_bytes(self._content.get(inode, b""))
