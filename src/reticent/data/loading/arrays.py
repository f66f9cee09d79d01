"""Named arrays on disk: a folder of .npy files that appears whole or not at all, and its fingerprint."""

from __future__ import annotations

import errno
import hashlib
import math
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.errors import DataError

Array = npt.NDArray[Any]
Arrays = dict[str, Array]


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
def fresh_folder(folder: Path, what: str, *, publish: bool = True) -> Iterator[Path]:
    """A new folder to fill, which takes its name when it is whole: a crash leaves nothing under that name.

    Whoever comes second keeps what the first has published. Without `publish` it is only a place to work.
    """
    fresh = folder.parent / f".{folder.name}-{secrets.token_hex(4)}"
    try:
        fresh.mkdir(parents=True)
        yield fresh
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


def read_arrays(folder: Path) -> Arrays:
    """Map every .npy file of a folder; what is written to the arrays stays in memory."""
    return {path.stem: np.load(path, mmap_mode="c") for path in sorted(folder.glob("*.npy"))}
