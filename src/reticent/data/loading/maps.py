"""Arrays that stay on disk: tensors over memory-mapped .npy files, read page by page as examples are taken."""

from __future__ import annotations

import math
import mmap
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from reticent.data.examples import Examples
from reticent.data.loading.arrays import Array
from reticent.reading import reading

_SMALL_ROW = 1 << 14


def map_array(path: str | Path, *, writable: bool = False) -> Tensor:
    """A tensor over a .npy file; writing to it is impossible, or with `writable` stays in memory, never on disk."""
    with reading(path, "it must be a plain array of numbers saved with numpy.save", quote=False):
        array = np.load(path, mmap_mode="c" if writable else "r")
        if not writable:
            _expect_scattered_rows(array)
        return _tensor(array)


def _tensor(array: Array) -> Tensor:
    with warnings.catch_warnings():
        # PyTorch has no read-only tensors and says so; the map refuses writes by itself.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable", category=UserWarning)
        return torch.from_numpy(array)


def mapped(x: str | Path, y: str | Path) -> Examples:
    """Examples that stay in .npy files of any size: only the rows that are taken are read.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "x.npy", np.ones((4, 2), np.float32)); np.save(folder / "y.npy", np.arange(4))
    >>> mapped(folder / "x.npy", folder / "y.npy").take([2]).y
    tensor([2])
    """
    return Examples(map_array(x), map_array(y))


def _expect_scattered_rows(array: Array) -> None:
    """Private draws are scattered: reading ahead around each small row would read the file many times over."""
    below: object = array.base
    row = array.itemsize * math.prod(array.shape[1:])
    if isinstance(below, mmap.mmap) and row <= _SMALL_ROW and hasattr(mmap, "MADV_RANDOM"):
        below.madvise(mmap.MADV_RANDOM)
