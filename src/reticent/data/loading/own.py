"""The user's own data: anything indexable as examples, and a small file that describes a dataset on disk.

    name = "hospital"
    train = "train.csv"           # a table, with a schema
    test = "test.csv"
    schema = "schema.toml"

    classes = 2
    train = ["x.npy", "y.npy"]    # arrays; float ones stay on disk however large, bytes are scaled to [0, 1]

    train = "photos/train"        # a folder of images for each class, which has the folder's name
    size = [32, 32]
    channels = 3

What such a file says is public: it must be known beforehand, not found out from the private records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import default_collate

from reticent.data.examples import Dataset, Examples
from reticent.data.loading.images import ImageSchema, propose_images
from reticent.data.loading.maps import mapped
from reticent.data.loading.npz import ArraySchema, read_npz
from reticent.data.tables.schema import read_schema, table
from reticent.data.whose import persons_in
from reticent.errors import DataError
from reticent.reading import read_toml


def as_examples(source: Any, labels: object = None) -> Examples:
    """Examples from inputs and labels (arrays, tensors, lists), a pair of them, or any map-style dataset of pairs.

    >>> as_examples([[0.0], [1.0]], [0, 1]).y
    tensor([0, 1])
    >>> len(as_examples([(torch.zeros(2), 1), (torch.ones(2), 0)]))
    2
    """
    if isinstance(source, Examples):
        return source
    if labels is not None:
        return Examples(_inputs(source), torch.as_tensor(labels))
    if isinstance(source, tuple) and len(source) == 2:
        return as_examples(*source)
    if hasattr(source, "__getitem__") and hasattr(source, "__len__"):
        x, y = default_collate([source[row] for row in range(len(source))])
        return Examples(x, y)
    raise DataError(
        f"cannot read examples from {type(source).__name__}: give inputs and labels, or a map-style dataset of pairs"
    )


def _inputs(values: object) -> torch.Tensor:
    x = torch.as_tensor(values)
    return x.float() if x.dtype == torch.float64 else x


def describe(path: str | Path, *, groups: str | None = None) -> Dataset:
    """The dataset that a description file speaks of; paths in it are relative to the file.

    `groups` names the column of the training table, or the file beside arrays, that says whose each row is.
    """
    place = Path(path)
    content = read_toml(place)
    if "train" not in content:
        raise DataError(f"{place}: 'train' is missing: name a table, a folder of images, or [inputs, labels]")
    if "size" in content and "classes" not in content:
        content["classes"] = list(propose_images(place.parent / str(content["train"])).classes)
    train, test = (_part(content, part, place, groups if part == "train" else None) for part in ("train", "test"))
    if train is None:
        raise DataError(f"{place}: 'train' is empty")
    classes, names = _classes(content, place)
    return Dataset(str(content.get("name", place.stem)), train, test, classes, f"described by {place}", names)


def _part(content: Mapping[str, Any], part: str, place: Path, groups: str | None) -> Examples | None:
    named = content.get(part)
    if named is None:
        return None
    if isinstance(named, list):
        if len(named) != 2:
            raise DataError(f"{place}: {part} must list two files, inputs and labels, not {named}")
        found = _unit(mapped(*(place.parent / file for file in named)), _names(content))
        return found if groups is None else replace(found, groups=_whose(place.parent / groups))
    if "schema" in content:
        return table(place.parent / named, place.parent / content["schema"], groups=groups)
    if groups is not None:
        raise DataError(f"{place}: a folder of images does not say whose they are: groups is for tables and arrays")
    if "size" in content:
        return ImageSchema.from_json({**content, "classes": list(_names(content))}).examples(place.parent / named)
    raise DataError(f"{place}: a table needs 'schema', a folder of images 'size', arrays a list of two files")


def _whose(file: Path) -> torch.Tensor:
    """The persons that a file of numbers or names tells, row by row."""
    return persons_in(read_npz(file)["x"] if file.is_file() else None, file.name, str(file.parent))


def _unit(found: Examples, names: tuple[str, ...]) -> Examples:
    x = found.x.float() / 255 if found.x.dtype == torch.uint8 else _inputs(found.x)
    return Examples(x, found.y, ArraySchema(names) if names else None)


def _names(content: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the classes; numbers, if only their count is told."""
    named = content.get("classes", ())
    return tuple(str(name) for name in (range(named) if isinstance(named, int) else named))


def _classes(content: Mapping[str, Any], place: Path) -> tuple[int, tuple[str, ...] | None]:
    """How many classes there are, and what they are called if that is said."""
    if "schema" in content and (schema := read_schema(place.parent / content["schema"])).target is not None:
        return 1, None  # a number to predict
    named = schema.classes if "schema" in content else content.get("classes")
    if isinstance(named, list | tuple):
        return len(named), tuple(str(name) for name in named)
    if isinstance(named, int) and named > 1:
        return named, None
    raise DataError(f"{place}: 'classes' must say how many there are, or list their names")
