"""CIFAR-10 and CIFAR-100: the official python and binary archives, a packed form, and PNG strips."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from reticent.data.examples import Dataset
from reticent.data.loading.archives import read_members
from reticent.data.loading.arrays import Array, Arrays
from reticent.data.loading.packed import unpack_images
from reticent.data.loading.pickles import unpickle_arrays
from reticent.data.loading.png import decode_png
from reticent.data.loading.stored import FileLayout, Stored, split_dataset, unit_images
from reticent.errors import DataError

Bytes = npt.NDArray[np.uint8]
_PIXELS = 3 * 32 * 32

TRAIN_10, TEST_10 = tuple(f"data_batch_{number}" for number in range(1, 6)), ("test_batch",)


def _split(parts: Mapping[str, tuple[Array, Array]]) -> Arrays:
    """Name the arrays of each part."""
    return {f"{part}_{axis}": array for part, pair in parts.items() for axis, array in zip("xy", pair, strict=True)}


def _planes(rows: Bytes) -> Bytes:
    return rows.reshape(-1, 3, 32, 32)


def decode_binary(raw: bytes, label_bytes: int) -> tuple[Bytes, Bytes]:
    """Images and labels of a binary batch: label bytes (the last is the class), then planes of red, green, blue.

    >>> x, y = decode_binary(bytes([7]) + bytes(3072), label_bytes=1)
    >>> x.shape, y.tolist()
    ((1, 3, 32, 32), [7])
    """
    if not raw or len(raw) % (_PIXELS + label_bytes):
        raise DataError(f"not a CIFAR batch: {len(raw)} bytes is no multiple of {_PIXELS + label_bytes}")
    rows = np.frombuffer(raw, np.uint8).reshape(-1, _PIXELS + label_bytes)
    return _planes(rows[:, label_bytes:]), rows[:, label_bytes - 1]


def decode_python(raw: bytes, label: bytes) -> tuple[Bytes, Bytes]:
    """Images and labels of a pickled batch."""
    batch = unpickle_arrays(raw)
    rows, labels = batch.get(b"data"), batch.get(label)
    if not isinstance(rows, np.ndarray) or rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != _PIXELS:
        raise DataError(f"not a CIFAR batch: data must be rows of {_PIXELS} bytes")
    if not isinstance(labels, list) or len(labels) != len(rows) or not all(type(one) is int for one in labels):
        raise DataError("not a CIFAR batch: there must be a label, a whole number, for each row")
    return _planes(rows), np.array(labels, np.uint8)


def _reader(
    archive: str, parts: dict[str, tuple[str, ...]], decode: Callable[[bytes], tuple[Bytes, Bytes]]
) -> Callable[[Path], Arrays]:
    """A reader of batches from an archive, or from the folder it unpacks to."""

    def read(folder: Path) -> Arrays:
        names = [name for batches in parts.values() for name in batches]
        where = folder / archive
        raw = read_members(where if where.exists() else folder, names)
        decoded = {part: [decode(raw[name]) for name in batches] for part, batches in parts.items()}
        return _split({part: _join(batches) for part, batches in decoded.items()})

    return read


def _join(batches: list[tuple[Bytes, Bytes]]) -> tuple[Array, Array]:
    images, labels = zip(*batches, strict=True)
    return np.concatenate(images), np.concatenate(labels)


def _official(
    archive: str,
    parts: dict[str, tuple[str, ...]],
    decode: Callable[[bytes], tuple[Bytes, Bytes]],
    archive_md5: tuple[str, ...] = (),
    batch_md5: tuple[str, ...] = (),
) -> tuple[FileLayout, FileLayout]:
    """The archive, and the files it unpacks to."""
    read = _reader(archive, parts, decode)
    batches = tuple(name for names in parts.values() for name in names)
    return FileLayout((archive,), read, md5=archive_md5), FileLayout(batches, read, md5=batch_md5)


def _read_packed(folder: Path) -> Arrays:
    parts = {}
    for part in ("train", "test"):
        with np.load(folder / f"{part}.npz") as file:
            parts[part] = (unpack_images(file["residual"]), file["label"])
    return _split(parts)


def _read_strips(folder: Path) -> Arrays:
    """PNG files with one image a row, and the labels as JSON lists (their name is misspelt at the source)."""

    def images(batch: str) -> Bytes:
        pixels = decode_png((folder / f"{batch}.png").read_bytes())
        return np.ascontiguousarray(pixels.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2))

    def labels(part: str) -> Bytes:
        return np.array(json.loads((folder / f"{part}_lables.json").read_text()), np.uint8)

    batches = {"train": TRAIN_10, "test": TEST_10}
    return _split({part: (np.concatenate([images(b) for b in batches[part]]), labels(part)) for part in batches})


def _in(folder: str, names: tuple[str, ...], suffix: str = "") -> tuple[str, ...]:
    return tuple(f"{folder}/{name}{suffix}" for name in names)


_BIN_10, _PY_10 = "cifar-10-batches-bin", "cifar-10-batches-py"
STRIPS = (*(f"{batch}.png" for batch in TRAIN_10 + TEST_10), "train_lables.json", "test_lables.json")

CIFAR10 = Stored(
    "cifar10",
    (
        FileLayout(("train.npz", "test.npz"), _read_packed),
        *_official(
            "cifar-10-binary.tar.gz",
            {"train": _in(_BIN_10, TRAIN_10, ".bin"), "test": _in(_BIN_10, TEST_10, ".bin")},
            partial(decode_binary, label_bytes=1),
            ("c32a1d4ab5d03f1284b67883e8d87530",),
        ),
        *_official(
            "cifar-10-python.tar.gz",
            {"train": _in(_PY_10, TRAIN_10), "test": _in(_PY_10, TEST_10)},
            partial(decode_python, label=b"labels"),
            ("c58f30108f718f92721af3b95e74349a",),
            (
                "c99cafc152244af753f735de768cd75f",
                "d4bba439e000b95fd0a9bffe97cbabec",
                "54ebc095f3ab1f0389bbae665268c751",
                "634d18415352ddfa80567beed471001a",
                "482c414d41f54cd18b22e5b47cb7c3cb",
                "40351d587109b95175f43aff81a1287e",
            ),
        ),
        FileLayout(STRIPS, _read_strips),
    ),
    unit_images,
)
CIFAR100 = Stored(
    "cifar100",
    (
        *_official(
            "cifar-100-binary.tar.gz",
            {"train": ("cifar-100-binary/train.bin",), "test": ("cifar-100-binary/test.bin",)},
            partial(decode_binary, label_bytes=2),
            ("03b5dce01913d631647c71ecec9e9cb8",),
            ("6172c7755cfe09b2fe270c85cebc1b15", "4499cfba6c016c1be1438163640a0898"),
        ),
        *_official(
            "cifar-100-python.tar.gz",
            {"train": ("cifar-100-python/train",), "test": ("cifar-100-python/test",)},
            partial(decode_python, label=b"fine_labels"),
            ("eb9058c3a382ffc7106e4002c42a8d85",),
            ("16019d7e3df5f24257cddd939b257f8d", "f0ef6b0ae62326f3e7ffdfab6717acfc"),
        ),
    ),
    unit_images,
)


THINGS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
NOTE = "official split of 50,000 and 10,000; Krizhevsky 2009, no licence stated"


def load_cifar10(root: Path) -> Dataset:
    """Load CIFAR-10 as 3x32x32 images in [0, 1]."""
    return split_dataset(CIFAR10, root, 10, NOTE, THINGS)


def load_cifar100(root: Path) -> Dataset:
    """Load CIFAR-100 as 3x32x32 images in [0, 1] with its 100 fine labels."""
    return split_dataset(CIFAR100, root, 100, NOTE)
