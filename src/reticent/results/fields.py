"""Fields: JSON that may be damaged or somebody else's, read field by field into real types."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn, TypeVar

from reticent.errors import DataError
from reticent.reading import parse_json, read_text

T = TypeVar("T", str, int, float, bool)
Name = TypeVar("Name", bound=str)

KINDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


class Fields:
    """An object of JSON; what is not as it should be is an error that names the place and the field.

    >>> Fields({"rounds": 3}, "record.json").need("rounds", float)
    3.0
    >>> Fields({"rounds": "3"}, "record.json").get("rounds", int)
    Traceback (most recent call last):
    reticent.errors.DataError: record.json: rounds must be a whole number, not '3'
    """

    def __init__(self, data: object, where: str):
        if not isinstance(data, Mapping):
            raise DataError(f"{where} is not an object of JSON: it is damaged, or not ours")
        self.data: Mapping[str, object] = data
        self.where = where

    def get(self, name: str, kind: type[T]) -> T | None:
        """The value of a field; None if it is not there, or null."""
        value = self.data.get(name)
        return None if value is None else self._as(name, value, kind)

    def need(self, name: str, kind: type[T]) -> T:
        """The value of a field that must be there."""
        value = self.get(name, kind)
        return self._missing(name) if value is None else value

    def choice(self, name: str, known: Iterable[Name]) -> Name | None:
        """The value of a field that is one of a few words; None if it is not there."""
        value = self.get(name, str)
        found = next((word for word in known if word == value), None)
        if value is not None and found is None:
            raise DataError(f"{self.where}: {name} must be one of {', '.join(known)}, not {value!r}")
        return found

    def many(self, name: str, kind: type[T]) -> tuple[T, ...] | None:
        """The values of a field that holds a list of one kind."""
        found = self._list(name)
        return None if found is None else tuple(self._as(name, value, kind) for value in found)

    def pairs(self, name: str) -> tuple[tuple[float, float], ...] | None:
        """The values of a field that holds a list of pairs of numbers."""
        found = self._list(name)
        return None if found is None else tuple(self._pair(name, pair) for pair in found)

    def rows(self, name: str) -> tuple[tuple[int, ...], ...] | None:
        """The values of a field that holds a square of whole numbers, row by row."""
        found = self._list(name)
        if found is None:
            return None
        rows = tuple(tuple(self._as(name, one, int) for one in row) for row in found if isinstance(row, list))
        if any(len(row) != len(found) for row in rows) or len(rows) != len(found):
            raise DataError(f"{self.where}: {name} must have as many columns as rows")
        return rows

    def part(self, name: str) -> Fields | None:
        """A field that holds an object."""
        value = self.data.get(name)
        return None if value is None else Fields(value, f"{self.where}: {name}")

    def numbers(self, name: str) -> dict[str, float] | None:
        """A field that holds an object of numbers."""
        found = self.part(name)
        return None if found is None else {key: found.need(key, float) for key in found.data}

    def need_part(self, name: str) -> Fields:
        """A field that must hold an object."""
        found = self.part(name)
        return self._missing(name) if found is None else found

    def parts(self, name: str) -> list[Fields] | None:
        """A field that holds a list of objects."""
        found = self._list(name)
        return None if found is None else [Fields(value, f"{self.where}: {name}") for value in found]

    def only(self, known: Iterable[str]) -> None:
        """Refuse fields that are not known: to leave out what a newer version wrote would be to misread it."""
        unknown = sorted(self.data.keys() - set(known))
        if unknown:
            raise DataError(
                f"{self.where}: {', '.join(unknown)} is not known here. If a newer Reticent wrote it, read it with "
                "that one (pip install --upgrade reticent); if not, it is no result of ours"
            )

    def _missing(self, name: str) -> NoReturn:
        raise DataError(f"{self.where}: {name} is missing: the file is damaged, or not ours")

    def _list(self, name: str) -> list[object] | None:
        value = self.data.get(name)
        if value is not None and not isinstance(value, list):
            raise DataError(f"{self.where}: {name} must be a list, not {value!r}")
        return value

    def _pair(self, name: str, value: object) -> tuple[float, float]:
        match value:
            case [first, second]:
                return self._as(name, first, float), self._as(name, second, float)
        raise DataError(f"{self.where}: {name} must hold pairs of numbers, not {value!r}")

    def _as(self, name: str, value: object, kind: type[T]) -> T:
        if kind is float and type(value) is int and abs(value) < 2**1000:
            value = float(value)
        if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
            raise DataError(f"{self.where}: {name} must be {KINDS[kind]}, not {value!r}")
        return value


def read_lines(path: Path) -> list[Fields]:
    """The objects of a file with one a line."""
    lines = read_text(path).split("\n")  # not at the other ends of lines that Unicode has: they may stand in a text
    places = [(f"{path}, line {number}", line) for number, line in enumerate(lines, start=1) if line.strip()]
    return [Fields(parse_json(line, where), where) for where, line in places]
