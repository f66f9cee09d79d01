"""Named arrays on disk: a folder of .npy files that appears whole or not at all, and its fingerprint."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
Arrays = dict[str, Array]


def fingerprint(array: Array) -> str:
    """sha256 of type, shape and bytes: the same for equal arrays, whatever file they came from.

    >>> fingerprint(np.arange(3, dtype=np.uint8))[:8]
    'f85a16cb'
    """
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """sha256 of a file's bytes, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_arrays(folder: Path, arrays: Mapping[str, Array]) -> None:
    """Write a folder of arrays in one step: a crash leaves the old folder or none, never half of one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, array in arrays.items():
            np.save(fresh / f"{name}.npy", array)
        publish(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def publish(fresh: Path, folder: Path) -> None:
    """Move a finished folder to its name; whoever comes second keeps what the first has published."""
    try:
        os.rename(fresh, folder)
    except OSError:
        if not folder.is_dir():
            raise


def read_arrays(folder: Path, *, mapped: bool = False) -> Arrays:
    """Read every .npy file of a folder, into memory or as private copy-on-write maps."""
    return {path.stem: np.load(path, mmap_mode="c" if mapped else None) for path in sorted(folder.glob("*.npy"))}
