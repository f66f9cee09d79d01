"""UCI Adult (census income), and `adult-clean`: a processed copy that lacks the records with unknown values."""

from __future__ import annotations

import csv
import io
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from reticent.data.examples import SPLIT_NOTE, Dataset, Examples, fixed_split
from reticent.data.loading.archives import gunzip, read_members
from reticent.data.loading.arrays import Arrays
from reticent.data.loading.stored import FileLayout, Stored, split_dataset
from reticent.data.tables.encoding import Number
from reticent.data.tables.schema import Schema

Floats = npt.NDArray[np.float64]

_RICH = "salary_>50K"


@cache
def schema() -> Schema:
    """The public description of the columns.

    >>> schema().width
    108
    """
    text = resources.files("reticent.data.sets").joinpath("adult.toml").read_text("utf-8")
    return Schema.from_json(tomllib.loads(text))


def encode_adult(text: str) -> Examples:
    """The records of adult.data or adult.test, which has a comment line and a full stop after each label."""
    records = (line.rstrip(".") for line in text.splitlines() if line.count(",") == len(schema().columns))
    header = [*schema().columns, schema().label]
    cells = zip(*csv.reader(records, skipinitialspace=True), strict=True)
    return schema().examples(dict(zip(header, cells, strict=True)))


def _arrays(train: str, test: str) -> Arrays:
    arrays: Arrays = {}
    for part, text in (("train", train), ("test", test)):
        x, y = encode_adult(text)
        arrays |= {f"{part}_x": x.numpy(), f"{part}_y": y.numpy()}
    return arrays


def _read_gzip(folder: Path) -> Arrays:
    return _arrays(*(gunzip(folder / f"adult.{part}.gz").decode() for part in ("data", "test")))


def _read_plain(folder: Path) -> Arrays:
    return _arrays(*((folder / f"adult.{part}").read_text() for part in ("data", "test")))


def _read_clean(folder: Path) -> Arrays:
    """A table that is one-hot already: scale its numbers by the same public ranges."""
    text = read_members(folder / "adult.csv.zip", ["adult.csv"])["adult.csv"].decode()
    header = text[: text.index("\n")].strip().split(",")
    table = np.loadtxt(io.StringIO(text), np.float64, delimiter=",", skiprows=1)
    kept = [place for place, name in enumerate(header) if not name.startswith("salary_")]
    x = np.stack([_scale(header[place], table[:, place]) for place in kept], axis=1)
    return {"x": x.astype(np.float32), "y": table[:, header.index(_RICH)].astype(np.int64)}


def _scale(name: str, values: Floats) -> Floats:
    column = schema().columns.get(name)
    kind = None if column is None else column.kind
    return (values - kind.low) / (kind.high - kind.low) if isinstance(kind, Number) else values


ADULT = Stored(
    "adult",
    (
        FileLayout(("adult.data.gz", "adult.test.gz"), _read_gzip),
        FileLayout(("adult.data", "adult.test"), _read_plain),
    ),
)
CLEAN = Stored("adult-clean", (FileLayout(("adult.csv.zip",), _read_clean),))
EARNINGS = ("at most 50K", "more than 50K")
_NOTE = "UCI, Becker and Kohavi 1996, CC BY 4.0; public ranges and values, unknown is a value of its own"


def load_adult(root: Path) -> Dataset:
    """Load Adult as 108 numbers in [0, 1]; class 1 earns more than 50K."""
    return split_dataset(ADULT, root, 2, f"official split of 32,561 and 16,281; {_NOTE}", EARNINGS)


def load_clean(root: Path) -> Dataset:
    """Load the processed copy: 45,222 records without unknown values, in the order of that copy."""
    arrays = CLEAN.arrays(root)
    train, test = fixed_split(Examples(torch.from_numpy(arrays["x"]), torch.from_numpy(arrays["y"])))
    note = f"a processed copy of UCI Adult without the records that hold unknown values; {SPLIT_NOTE}"
    return Dataset("adult-clean", train, test, classes=2, note=note, names=EARNINGS)
