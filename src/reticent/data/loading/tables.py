"""CSV tables with a public schema: what the columns may hold is declared in a small file, never read off the data.

label = "income"
classes = ["<=50K", ">50K"]

[columns.age]                 # a number, clamped to a public range and scaled to [0, 1]
low = 17
high = 90

[columns.workclass]           # a choice, one column of 0 and 1 for each public value
values = ["Private", "State-gov", "?"]

[columns.id]                  # left out
skip = true
"""

from __future__ import annotations

import csv
import math
import tomllib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from reticent.data.examples import Examples
from reticent.errors import DataError


@dataclass(frozen=True)
class Number:
    """A column of numbers with a public range."""

    low: float
    high: float

    width = 1

    def encode(self, cell: str) -> list[float]:
        """Clamp to the range and scale to [0, 1]; NaN is refused because clamping would let it through."""
        value = float(cell)
        if math.isnan(value):
            raise ValueError("not a number")
        return [(min(max(value, self.low), self.high) - self.low) / (self.high - self.low)]


@dataclass(frozen=True)
class Choice:
    """A column that holds one of a few public values."""

    values: tuple[str, ...]

    @property
    def width(self) -> int:
        """One column of 0 and 1 for each value."""
        return len(self.values)

    def encode(self, cell: str) -> list[float]:
        """1 at the value's place."""
        place = self.values.index(cell)
        return [float(other == place) for other in range(len(self.values))]


@dataclass(frozen=True)
class Schema:
    """The public description of a table: its columns in order (None is left out), its label and the label's values."""

    columns: Mapping[str, Number | Choice | None]
    label: str
    classes: tuple[str, ...]

    @property
    def width(self) -> int:
        """How many numbers describe one row."""
        return sum(column.width for column in self.columns.values() if column is not None)


def read_schema(path: str | Path) -> Schema:
    """Read a schema file; see the top of this module for its form."""
    try:
        return parse_schema(Path(path).read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError, DataError) as error:
        raise DataError(f"schema {path}: {error}") from error


def parse_schema(text: str) -> Schema:
    """The schema written in TOML.

    >>> parse_schema('label="y"\\nclasses=["a","b"]\\n[columns.age]\\nlow=0\\nhigh=99').columns["age"]
    Number(low=0.0, high=99.0)
    """
    content = tomllib.loads(text)
    for key in ("label", "classes", "columns"):
        if key not in content:
            raise DataError(f"{key!r} is missing: give label, classes and a [columns.NAME] table for each column")
    columns = {name: _column(name, entry) for name, entry in content["columns"].items()}
    return Schema(columns, str(content["label"]), tuple(str(value) for value in content["classes"]))


def _column(name: str, entry: Mapping[str, Any]) -> Number | Choice | None:
    if entry.get("skip") is True:
        return None
    if "values" in entry:
        return Choice(tuple(str(value) for value in entry["values"]))
    if "low" in entry and "high" in entry and entry["low"] < entry["high"]:
        return Number(float(entry["low"]), float(entry["high"]))
    raise DataError(f"column {name!r} needs low and high (low < high), or values, or skip = true")


def table(path: str | Path, schema: str | Path | Schema) -> Examples:
    """The rows of a CSV file with a header as examples, encoded by the schema alone.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = file.write_text("age,y\\n50,b\\n120,a\\n")
    >>> x, y = table(file, Schema({"age": Number(0, 100)}, "y", ("a", "b")))
    >>> x.tolist(), y.tolist()
    ([[0.5], [1.0]], [1, 0])
    """
    known = schema if isinstance(schema, Schema) else read_schema(schema)
    if not Path(path).is_file():
        raise DataError(f"there is no table {path}")
    with Path(path).open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file, skipinitialspace=True)
        header = next(lines, [])
        return encode_rows(lines, header, known, str(path))


def encode_rows(rows: Iterable[Sequence[str]], header: Sequence[str], schema: Schema, origin: str) -> Examples:
    """Encode rows of cells; a cell the schema does not allow is an error that names its line and column."""
    _check_header(header, schema, origin)
    x, y = array("f"), array("q")
    for line, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise DataError(f"{origin}, line {line}: {len(row)} cells, but the header has {len(header)}")
        cells = dict(zip(header, row, strict=True))
        y.append(_encode_label(cells[schema.label], schema, f"{origin}, line {line}"))
        x.extend(_encode_row(cells, schema, f"{origin}, line {line}"))
    inputs = np.array(x, np.float32).reshape(len(y), schema.width)
    return Examples(torch.from_numpy(inputs), torch.from_numpy(np.array(y, np.int64)))


def _check_header(header: Sequence[str], schema: Schema, origin: str) -> None:
    known = {*schema.columns, schema.label}
    strange, absent = sorted(set(header) - known), sorted(known - set(header))
    if strange or absent:
        raise DataError(
            f"{origin}: columns and schema differ (not in the schema: {strange}; not in the table: {absent}); "
            "add them to the schema, with skip = true to leave one out"
        )


def _encode_row(cells: Mapping[str, str], schema: Schema, place: str) -> list[float]:
    numbers: list[float] = []
    for name, column in schema.columns.items():
        if column is None:
            continue
        try:
            numbers += column.encode(cells[name].strip())
        except ValueError:
            raise DataError(f"{place}: {cells[name]!r} in column {name!r} is not allowed by the schema") from None
    return numbers


def _encode_label(cell: str, schema: Schema, place: str) -> int:
    if cell.strip() not in schema.classes:
        raise DataError(f"{place}: label {cell!r} is not one of the schema's classes {', '.join(schema.classes)}")
    return schema.classes.index(cell.strip())
