"""The public description of a table: what its columns may hold is declared in a small file, never read off the data.

label = "income"
classes = ["<=50K", ">50K"]   # or, for a number to predict, its public range: target = { low = 0, high = 500 }
missing = ["?", "NA"]         # cells without a value; an empty cell always is one
coding = "latin-1"            # of a text file, if not UTF-8
separator = ";"               # if not a comma
names = ["age", "income"]     # of a text file without a header

[columns.age]                 # a number, clamped to a public range and scaled to [0, 1]
low = 17
high = 90
fill = 40                     # for missing cells: a public value, or "noisy" for a mean that is released and charged
indicator = true              # one more column, 1 where the cell is missing

[columns.workclass]           # a choice, one column of 0 and 1 for each public value
values = ["Private", "State-gov", "?"]
other = true                  # one more, for values that are not listed

[columns.smoker]
bool = true

[columns.born]                # "iso", or a format such as "%d.%m.%Y"
date = "iso"
low = 1900-01-01
high = 2020-12-31

[columns.notes]               # text: which of so many buckets its words are hashed into, as a row of length 8
text = 4096

[columns.id]                  # left out
skip = true
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from operator import attrgetter
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from reticent.data.examples import Examples
from reticent.data.preprocessing import names_of
from reticent.data.tables.encoding import NOISY, BadCell, Column, Frame, Number, encode, read_column, text_of
from reticent.data.tables.frames import TEXT, Table, cells_of, frame_of, is_table
from reticent.data.whose import persons_in
from reticent.errors import DataError
from reticent.reading import read_toml

DECLARED = "column ranges, categories and class names are public knowledge (schema.json, declared)"
ACCEPTED = (
    "column ranges, categories and class names are public knowledge (schema.json, accepted as they were read from the "
    "examples): what they tell of the examples is not covered"
)


@dataclass(frozen=True)
class Schema:
    """The columns of a table in order (None is left out), its label and the label's values.

    >>> schema = Schema.from_json({"label": "y", "classes": ["a", "b"], "columns": {"age": {"low": 0, "high": 99}}})
    >>> schema.width, schema.apply({"age": [99, 0]}).tolist()
    (1, [[1.0], [0.0]])
    """

    columns: Mapping[str, Column | None]
    label: str
    classes: tuple[str, ...]
    content: Mapping[str, object]
    """The file it was read from, as plain data."""
    accepted: bool = False
    """Whether it was read from the examples and accepted, instead of declared."""
    target: Number | None = None
    """The public range of a number to predict, which is scaled to [0, 1] as inputs are; then there are no classes."""

    @staticmethod
    def from_json(content: Mapping[str, object]) -> Schema:
        """The schema that a TOML or JSON file holds."""
        columns, classes, target = content.get("columns"), content.get("classes"), content.get("target")
        if not isinstance(columns, Mapping) or not (isinstance(classes, list) or target) or "label" not in content:
            raise DataError(
                "a schema gives label, classes (or target = { low = ..., high = ... } for a number to predict) and a "
                "[columns.NAME] table for each column"
            )
        try:
            read = {str(name): read_column(name, entry) for name, entry in columns.items()}
            aim = None if target is None else read_column("target", target if isinstance(target, Mapping) else {})
        except ValueError as error:
            raise DataError(str(error)) from None
        accepted, plain = content.get("accepted") is True, {**_plain(content), "kind": "table"}
        if target is not None:
            if classes is not None or aim is None or not isinstance(aim.kind, Number):
                raise DataError("target gives low and high of a number to predict, and goes without classes")
            return Schema(read, str(content["label"]), (), plain, accepted, aim.kind)
        assert isinstance(classes, list)
        names = tuple(text_of(value) for value in classes)
        if len(set(names)) != len(names) or len(names) < 2:
            raise DataError("classes must list at least two names, each of them once")
        return Schema(read, str(content["label"]), names, plain, accepted)

    def to_json(self) -> dict[str, object]:
        """Everything as plain JSON data."""
        return dict(self.content)

    @property
    def width(self) -> int:
        """How many numbers describe one row."""
        return sum(column.width for column in self.columns.values() if column is not None)

    @property
    def assumes(self) -> tuple[str, ...]:
        """What a guarantee rests on where examples were read by this schema."""
        return (ACCEPTED if self.accepted else DECLARED,)

    @property
    def noisy(self) -> list[int]:
        """The places among the inputs whose missing cells wait for a mean that is released with noise."""
        places: list[int] = []
        start = 0
        for column in self.columns.values():
            if column is not None:
                places += range(start, start + column.kind.width) if column.fill == NOISY else []
                start += column.width
        return places

    def accepts(self, source: object) -> bool:
        """Whether this is a table."""
        return is_table(source)

    def frame(self, source: Table) -> Frame:
        """The columns of a table, read as the schema says."""
        coding, separator = (_text(self.content.get(name)) for name in ("coding", "separator"))
        return frame_of(source, coding=coding, separator=separator, names=self._names())

    def apply(self, source: Table) -> Tensor:
        """The inputs of a table, encoded by the schema alone; a label column is not needed."""
        frame = self.frame(source)
        self._check_header(list(frame), _origin(source), labelled=False)
        return self._inputs(frame, _origin(source))

    def examples(self, source: Table, *, groups: str | None = None) -> Examples:
        """The rows of a table as examples that remember how they were read; `groups` is a column of persons."""
        frame, origin = self.frame(source), _origin(source)
        whose = None if groups is None else persons_in(frame.get(groups), groups, origin)
        self._check_header([name for name in frame if name != groups or groups in self.columns], origin, labelled=True)
        if self.target is not None:
            return Examples(self._inputs(frame, origin), self._numbers(frame, origin), self, whose)
        places = {name: place for place, name in enumerate(self.classes)}
        labels = [places.get(text_of(cell), -1) for cell in frame[self.label]]
        if -1 in labels:
            raise DataError(
                f"{origin}: a label in column {self.label!r} is not one of the schema's classes "
                f"{', '.join(self.classes)}; {_which(origin)}"
            )
        y = torch.from_numpy(np.array(labels, np.int64))
        return Examples(self._inputs(frame, origin), y, self, whose)

    def check(self, source: Table) -> list[BadCell]:
        """Every cell that the schema does not allow; what this says is private."""
        found: list[BadCell] = []
        if isinstance(source, str | Path) and str(source).lower().endswith(TEXT):
            coding, separator = (_text(self.content.get(name)) for name in ("coding", "separator"))
            header, rows = cells_of(Path(source), coding=coding, separator=separator, names=self._names())
            for number, row in enumerate(rows):
                if len(row) != len(header):
                    found.append(BadCell(number, "", f"{len(row)} cells, but the header has {len(header)}"))
            if found:
                return found
        frame = self.frame(source)
        self._check_header(list(frame), _origin(source), labelled=self.label in frame)
        encode(frame, self.columns, self._missing(), found.append)
        if self.target is not None:
            encode({self.label: frame.get(self.label, ())}, {self.label: Column(self.target)}, (), found.append)
            return sorted(found, key=attrgetter("row"))
        known = set(self.classes)
        found += [
            BadCell(row, self.label, "not one of the classes")
            for row, cell in enumerate(frame.get(self.label, ()))
            if text_of(cell) not in known
        ]
        return sorted(found, key=attrgetter("row"))

    def said(self, answers: Tensor) -> list[str]:
        """What a model's answers say of each row: the name of its class, or the number in its own units."""
        if self.target is None:
            return names_of(self.classes, answers)
        low, high = self.target.low, self.target.high
        return [f"{low + (high - low) * value:.6g}" for value in answers.flatten().tolist()]

    def _numbers(self, frame: Frame, origin: str) -> Tensor:
        assert self.target is not None
        try:
            return torch.from_numpy(encode({self.label: frame[self.label]}, {self.label: Column(self.target)})[:, 0])
        except ValueError as error:
            raise DataError(f"{origin}: {error}: mend it; {_which(origin)}") from None

    def _inputs(self, frame: Frame, origin: str) -> Tensor:
        try:
            return torch.from_numpy(encode(frame, self.columns, self._missing()))
        except ValueError as error:
            remedies = {"missing": "declare fill or indicator for it", "values": "list it, or declare other = true"}
            remedy = remedies.get(str(error).split()[-1], "mend it")
            raise DataError(f"{origin}: {error}: {remedy}, or skip the column; {_which(origin)}") from None

    def _names(self) -> Sequence[str]:
        named = self.content.get("names")
        return [str(name) for name in named] if isinstance(named, list) else ()

    def _missing(self) -> frozenset[str]:
        marked = self.content.get("missing", ())
        return frozenset(str(mark) for mark in (marked if isinstance(marked, list) else [marked]) if marked != ())

    def _check_header(self, header: Sequence[str], origin: str, *, labelled: bool) -> None:
        needed = {name for name, column in self.columns.items() if column is not None}
        needed |= {self.label} if labelled else set()
        strange = sorted(set(header) - {*self.columns, self.label}) if labelled else []
        absent = sorted(needed - set(header))
        if strange or absent:
            raise DataError(
                f"{origin}: columns and schema differ (not in the schema: {strange}; not in the table: {absent}); "
                "add them to the schema, with skip = true to leave one out"
            )


def read_schema(path: str | Path) -> Schema:
    """Read a schema file; see the top of this module for its form."""
    content = read_toml(Path(path))
    try:
        return Schema.from_json(content)
    except DataError as error:
        raise DataError(f"schema {path}: {error}") from error


def table(source: Table, schema: str | Path | Schema, *, groups: str | None = None) -> Examples:
    """The rows of a table (a file or a data frame) as examples, encoded by the schema alone.

    `groups` names the column that says whose each row is; it need not be in the schema.

    >>> schema = Schema.from_json({"label": "y", "classes": ["a", "b"], "columns": {"age": {"low": 0, "high": 100}}})
    >>> x, y = table({"age": [50, 120], "y": ["b", "a"]}, schema)
    >>> x.tolist(), y.tolist()
    ([[0.5], [1.0]], [1, 0])
    """
    return (schema if isinstance(schema, Schema) else read_schema(schema)).examples(source, groups=groups)


def check(source: Table, schema: str | Path | Schema) -> list[BadCell]:
    """Every cell that a schema does not allow, by row (from 0) and column; what this says is private.

    >>> schema = Schema.from_json({"label": "y", "classes": ["a", "b"], "columns": {"age": {"low": 0, "high": 100}}})
    >>> check({"age": [50, "old"], "y": ["b", "a"]}, schema)
    [BadCell(row=1, column='age', says='not a number')]
    """
    return (schema if isinstance(schema, Schema) else read_schema(schema)).check(source)


def _plain(value: Mapping[str, object]) -> dict[str, object]:
    """TOML's content as JSON has it: dates become text."""

    def plain(part: object) -> object:
        if isinstance(part, Mapping):
            return {str(name): plain(inner) for name, inner in part.items()}
        if isinstance(part, list):
            return [plain(inner) for inner in part]
        return part.isoformat() if isinstance(part, date) else part

    return {name: plain(part) for name, part in value.items()}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _origin(source: object) -> str:
    return str(source) if isinstance(source, str | Path) else f"the {type(source).__name__}"


def _which(origin: str) -> str:
    """Which cell it is, is for whoever may see the records, not for a log."""
    return f"`reticent data check {origin}` says where (data.check in Python)"
