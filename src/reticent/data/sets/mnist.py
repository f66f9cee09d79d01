"""MNIST and Fashion-MNIST: four IDX files each, as their authors publish them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reticent.data.examples import Dataset
from reticent.data.loading.archives import gunzip
from reticent.data.loading.arrays import Array, Arrays
from reticent.data.loading.stored import FileLayout, Stored, split_dataset, unit_images
from reticent.errors import DataError

FILES = {
    "train_x": "train-images-idx3-ubyte",
    "train_y": "train-labels-idx1-ubyte",
    "test_x": "t10k-images-idx3-ubyte",
    "test_y": "t10k-labels-idx1-ubyte",
}
_UNSIGNED_BYTE = 8


def decode_idx(raw: bytes) -> Array:
    """Decode an IDX file of bytes: two zero bytes, the type, the number of axes, their sizes, the values.

    >>> decode_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    array([7, 8, 9], dtype=uint8)
    """
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] != _UNSIGNED_BYTE:
        raise DataError("not an IDX file of unsigned bytes")
    axes = raw[3]
    shape = np.frombuffer(raw, ">i4", axes, offset=4)
    values = np.frombuffer(raw, np.uint8, offset=4 + 4 * axes)
    if values.size != int(np.prod(shape, dtype=np.int64)):
        raise DataError(f"IDX file is cut short: {values.size} values for the shape {tuple(shape.tolist())}")
    return values.reshape(shape)


def _read_gzip(folder: Path) -> Arrays:
    return {part: decode_idx(gunzip(folder / f"{file}.gz")) for part, file in FILES.items()}


def _read_plain(folder: Path) -> Arrays:
    return {part: decode_idx((folder / file).read_bytes()) for part, file in FILES.items()}


def _read_csv(folder: Path) -> Arrays:
    """Tables with a header, and the label before the 784 pixels in each row."""
    arrays: Arrays = {}
    for part in ("train", "test"):
        table = np.loadtxt(folder / f"mnist_{part}.csv", np.uint8, delimiter=",", skiprows=1)
        arrays |= {f"{part}_x": table[:, 1:].reshape(-1, 28, 28), f"{part}_y": table[:, 0]}
    return arrays


_IDX = (
    FileLayout(tuple(f"{file}.gz" for file in FILES.values()), _read_gzip),
    FileLayout(tuple(FILES.values()), _read_plain),
)
MNIST = Stored("mnist", (*_IDX, FileLayout(("mnist_train.csv", "mnist_test.csv"), _read_csv)), unit_images)
FASHION = Stored("fashion-mnist", _IDX, unit_images)

CLOTHES = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
NOTE = "official split of 60,000 and 10,000"


def load_mnist(root: Path) -> Dataset:
    """Load MNIST as 1x28x28 images in [0, 1]."""
    return split_dataset(MNIST, root, 10, f"{NOTE}; LeCun and Cortes, CC BY-SA 3.0")


def load_fashion(root: Path) -> Dataset:
    """Load Fashion-MNIST as 1x28x28 images in [0, 1]."""
    return split_dataset(FASHION, root, 10, f"{NOTE}; Zalando SE, MIT", CLOTHES)
