"""Named arrays on disk: a folder of .npy files that appears whole or not at all, and its fingerprint."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import secrets
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.errors import DataError, FileWarning
from reticent.reading import reading

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
SUMS = "sums.json"
"""Beside the arrays of a folder: the fingerprint of each."""


def fingerprint(array: Array) -> str:
    """sha256 of type, shape and bytes: the same for equal arrays, whatever file they came from.

    >>> fingerprint(np.arange(3, dtype=np.uint8))[:8]
    'f85a16cb'
    """
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """Digest of a file's bytes, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


@contextmanager
def fresh_folder(folder: Path, what: str, *, publish: bool = True, private: bool = False) -> Iterator[Path]:
    """A new folder to fill, which takes its name when it is whole: a crash leaves nothing under that name.

    Whoever comes second keeps what the first has published. Without `publish` it is only a place to work; into a
    `private` one only its owner may look.
    """
    fresh = folder.parent / f".{folder.name}-{secrets.token_hex(4)}"
    try:
        fresh.mkdir(parents=True, mode=0o700 if private else 0o777)
        yield fresh
        for path in fresh.iterdir() if private else ():
            path.chmod(0o600)
        if publish:
            _rename(fresh, folder)
    except OSError as error:
        raise DataError(
            f"cannot keep {what} in {folder.parent} ({error.strerror or error}): free some space there "
            "or choose another folder with $RETICENT_DATA or $RETICENT_CACHE"
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _rename(fresh: Path, folder: Path) -> None:
    try:
        fresh.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def open_array(path: Path, shape: tuple[int, ...]) -> np.memmap[Any, np.dtype[np.float32]]:
    """A new float32 .npy file to be written through memory; refused if the disk has no room for it."""
    size = 4 * math.prod(shape)
    if shutil.disk_usage(path.parent).free < size:  # a map that outgrows the disk would kill the process
        raise OSError(errno.ENOSPC, f"{size / 1e9:.1f} GB needed")
    return np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)


def write_arrays(folder: Path, arrays: Mapping[str, Array], what: str) -> None:
    """Write a folder of arrays that appears whole or not at all."""
    with fresh_folder(folder, what) as fresh:
        for name, array in arrays.items():
            np.save(fresh / f"{name}.npy", array)
        seal_arrays(fresh)


def seal_arrays(folder: Path) -> None:
    """Write down what the arrays of a folder are, so that a change of them is seen."""
    sums = {path.stem: fingerprint(np.load(path, mmap_mode="r")) for path in sorted(folder.glob("*.npy"))}
    (folder / SUMS).write_text(json.dumps(sums))


def read_arrays(folder: Path) -> Arrays | None:
    """Map every .npy file of a folder; what is written to the arrays stays in memory.

    None if there is no such folder, or if it is not what was written, which is told: it is to be made again.
    """
    if not folder.is_dir():
        return None
    try:
        with reading(folder):
            arrays = {path.stem: np.load(path, mmap_mode="c") for path in sorted(folder.glob("*.npy"))}
            if not _as_written(folder, arrays):
                raise DataError(f"{folder} is damaged: its arrays are not those that were written")
    except DataError as error:
        warnings.warn(f"{error}; it is made again", FileWarning, stacklevel=3)
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return arrays


_LOOKED_AT: set[tuple[object, ...]] = set()
"""What this process has compared with its checksum already."""


def _as_written(folder: Path, arrays: Arrays) -> bool:
    files = [folder / SUMS, *(folder / f"{name}.npy" for name in arrays)]
    stats = [path.stat() for path in files]
    mark = (str(folder), *((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats))
    if mark not in _LOOKED_AT:
        if json.loads(files[0].read_text()) != {name: fingerprint(array) for name, array in arrays.items()}:
            return False
        _LOOKED_AT.add(mark)
    return True
