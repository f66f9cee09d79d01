"""Arrays in one file: .npz with inputs and labels, and the class names if whoever made it wrote them down."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reticent.data.examples import Examples
from reticent.data.loading.archives import check_zip
from reticent.data.loading.arrays import Array, Arrays
from reticent.errors import DataError
from reticent.reading import reading

PAIRS = {
    "train": (("x", "y"), ("train_x", "train_y"), ("x_train", "y_train")),
    "test": (("test_x", "test_y"), ("x_test", "y_test")),
}
DECLARED = "the class names are public knowledge (schema.json, declared)"
ACCEPTED = "the number of classes is public knowledge (schema.json, accepted as it was read from the examples)"


@dataclass(frozen=True)
class ArraySchema:
    """What is declared of arrays: the names of the classes; bytes are scaled to [0, 1], numbers stay as they are."""

    classes: tuple[str, ...]
    accepted: bool = False

    @staticmethod
    def numbered(count: int) -> ArraySchema:
        """Classes that have only numbers.

        >>> ArraySchema.numbered(2).classes
        ('0', '1')
        """
        return ArraySchema(tuple(str(name) for name in range(count)))

    @staticmethod
    def from_json(content: Mapping[str, object]) -> ArraySchema:
        """What a file says."""
        named = content.get("classes")
        if not isinstance(named, list) or len(named) < 2:
            raise DataError("classes must list the names of the classes, in the order of their labels")
        return ArraySchema(tuple(str(name) for name in named), content.get("accepted") is True)

    def to_json(self) -> dict[str, object]:
        """Everything as plain JSON data."""
        return {"kind": "arrays", "classes": list(self.classes), "accepted": self.accepted}

    @property
    def assumes(self) -> tuple[str, ...]:
        """What a guarantee rests on where examples were read by this."""
        return (ACCEPTED if self.accepted else DECLARED,)

    def accepts(self, source: object) -> bool:
        """Whether this is a file of arrays."""
        return isinstance(source, str | Path)

    def apply(self, source: Any) -> Tensor:
        """The inputs of a .npz or .npy file, or of an array."""
        if not isinstance(source, str | Path):
            return unit(np.asarray(source))
        found = read_npz(Path(source))
        names = [pair[0] for pairs in PAIRS.values() for pair in pairs if pair[0] in found]
        if not names:
            raise DataError(f"{source} has no array x of inputs: it has {', '.join(found)}")
        return unit(found[names[0]])

    def parts(self, arrays: Arrays, origin: str) -> tuple[Examples, Examples | None]:
        """Examples for training and, if there are any, for testing."""
        train, test = (self._part(arrays, part) for part in PAIRS)
        if train is None:
            raise DataError(f"{origin} must hold inputs x and labels y (or train_x, train_y, test_x, test_y)")
        return train, test

    def _part(self, arrays: Arrays, part: str) -> Examples | None:
        for x, y in PAIRS[part]:
            if x in arrays and y in arrays:
                return Examples(unit(arrays[x]), _labels(arrays[y]), self)
        return None


def _labels(values: Array) -> Tensor:
    if values.dtype.kind not in "fiub":
        raise DataError(f"labels of the type {values.dtype.name} are no numbers: give whole numbers from 0")
    return torch.from_numpy(values.astype(np.int64))


def propose_arrays(arrays: Arrays, origin: str) -> tuple[ArraySchema, bool]:
    """The class names, and whether they were read from the labels because the file does not name them."""
    if "classes" in arrays:
        return ArraySchema(tuple(str(name) for name in arrays["classes"].tolist())), False
    labels = next((arrays[y] for _, y in PAIRS["train"] if y in arrays), None)
    if labels is None or not len(labels) or labels.dtype.kind not in "iu":
        raise DataError(f"{origin} must hold labels y, whole numbers from 0, beside the inputs x")
    return replace(ArraySchema.numbered(int(labels.max()) + 1), accepted=True), True


def read_npz(path: Path) -> Arrays:
    """The arrays of a file; .npy is one array, x. Nothing that could run code is opened."""
    with reading(path, "save plain arrays, no objects, with numpy.savez", quote=False):
        if not zipfile.is_zipfile(path):
            with path.open("rb") as file:
                return {"x": np.load(file, allow_pickle=False)}
        with zipfile.ZipFile(path) as archive:
            check_zip(archive, path)
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}


def unit(values: Array) -> Tensor:
    """Inputs as a model wants them: bytes scaled to [0, 1], floats of 32 bits, whole numbers as they are.

    >>> unit(np.array([[255]], np.uint8)), unit(np.zeros((1, 1))).dtype
    (tensor([[1.]]), torch.float32)
    """
    if values.dtype == np.uint8:
        return torch.from_numpy(values).float() / 255
    if values.dtype.kind not in "fiub":
        raise DataError(
            f"inputs of the type {values.dtype} are no numbers: encode them first, or read a table by a schema"
        )
    return torch.from_numpy(values.astype(np.float32 if values.dtype.kind in "fb" else np.int64))
