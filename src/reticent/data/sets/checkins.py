"""Location-30 and Purchase-100: tables of yes and no with the class first (Shokri et al. 2017)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from reticent.data.examples import SPLIT_NOTE, Dataset, Examples, fixed_split
from reticent.data.loading.archives import read_members
from reticent.data.loading.arrays import Arrays
from reticent.data.loading.stored import FileLayout, Stored
from reticent.errors import DataError


def decode_rows(raw: bytes, features: int, classes: int) -> Arrays:
    """Rows of a class from 1 (quoted or not) and features of 0 or 1, separated by commas.

    >>> decode_rows(b'"2",0,1\\n1,1,0\\n', features=2, classes=2)["y"].tolist()
    [1, 0]
    """
    table = np.loadtxt(raw.decode("ascii").replace('"', "").splitlines(), np.int16, delimiter=",", ndmin=2)
    if table.shape[1] != 1 + features:
        raise DataError(f"{table.shape[1]} columns, expected a class and {features} features")
    labels, values = table[:, 0] - 1, table[:, 1:]
    if not ((values == 0) | (values == 1)).all() or labels.min() < 0 or labels.max() >= classes:
        raise DataError(f"features must be 0 or 1 and classes 1 to {classes}")
    return {"x": values.astype(np.uint8), "y": labels.astype(np.uint8)}


def _read_packed_location(folder: Path) -> Arrays:
    with np.load(folder / "location30.npz") as file:
        bits = np.unpackbits(file["bits"], axis=1, count=int(file["features"]))
        return {"x": bits, "y": file["label"]}


def _official(archive: str, member: str, features: int, classes: int) -> tuple[FileLayout, FileLayout]:
    def read(folder: Path) -> Arrays:
        where = folder / archive
        raw = read_members(where if where.exists() else folder, [member])[member]
        return decode_rows(raw, features, classes)

    return FileLayout((archive,), read), FileLayout((member,), read)


LOCATION = Stored(
    "location30",
    (FileLayout(("location30.npz",), _read_packed_location), *_official("dataset_location.tgz", "bangkok", 446, 30)),
)
PURCHASE = Stored("purchase100", _official("dataset_purchase.tgz", "dataset_purchase", 600, 100))


def _load(stored: Stored, root: Path, classes: int, origin: str) -> Dataset:
    arrays = stored.arrays(root)
    x = torch.from_numpy(arrays["x"].astype(np.float32))
    train, test = fixed_split(Examples(x, torch.from_numpy(arrays["y"].astype(np.int64))))
    return Dataset(stored.name, train, test, classes, note=f"{origin}; {SPLIT_NOTE}")


def load_location(root: Path) -> Dataset:
    """Load Location-30: 446 yes-or-no features of where somebody checked in."""
    return _load(LOCATION, root, 30, "Foursquare check-ins in Bangkok as used by Shokri et al. 2017")


def load_purchase(root: Path) -> Dataset:
    """Load Purchase-100: 600 yes-or-no features of what somebody bought."""
    return _load(PURCHASE, root, 100, "shopping histories as used by Shokri et al. 2017")
