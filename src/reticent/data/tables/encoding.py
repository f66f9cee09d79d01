"""How cells become numbers: by what is declared of their column, each by itself.

Only the standard library and NumPy: an exported model takes this file along.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np

Frame = dict[str, Sequence[object]]
"""A table by its columns: text as it stands in a file, or the values of a data frame."""

NOISY = "noisy"
"""In the place of a fill: a mean that is released with noise and charged to the run."""
_YES, _NO = frozenset({"true", "yes", "t", "y", "1"}), frozenset({"false", "no", "f", "n", "0"})
_WHOLE = re.compile(r"([+-]?\d+)\.0+")
_START = datetime(1970, 1, 1)
_PUNCTUATION = str.maketrans(dict.fromkeys('!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n\r', " "))


def text_of(cell: object) -> str:
    """A cell as the text that stands for it in every file format.

    >>> text_of(" north "), text_of(3.0), text_of("3.0"), text_of(True)
    ('north', '3', '3', 'True')
    """
    text = str(cell).strip()
    found = _WHOLE.fullmatch(text)
    return found[1] if found else text


def is_missing(cell: object, markers: Iterable[str] = ()) -> bool:
    """Whether a cell holds no value: empty, null, not a number, or one of the declared markers.

    >>> is_missing(""), is_missing(math.nan), is_missing("?", {"?"}), is_missing(0)
    (True, True, True, False)
    """
    if isinstance(cell, str):
        return not cell.strip() or cell.strip() in markers
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):  # as pandas calls them
        return True
    return (isinstance(cell, float) and math.isnan(cell)) or text_of(cell) in markers


@dataclass(frozen=True)
class Number:
    """A column of numbers with a public range, clamped to it and scaled to [0, 1]."""

    low: float
    high: float

    width = 1
    unknown = (0.5,)
    wants = "a number"

    def encode(self, cell: object) -> tuple[float, ...]:
        """The number's place in the range; NaN is refused because clamping would let it through."""
        value = float(cell)  # type: ignore[arg-type]  # what has no float is told by the caller
        if math.isnan(value):
            raise ValueError
        return ((min(max(value, self.low), self.high) - self.low) / (self.high - self.low),)


@dataclass(frozen=True)
class Choice:
    """A column that holds one of a few public values: 1 at the value's place; with `other`, one more for the rest."""

    values: tuple[str, ...]
    other: bool = False

    wants = "one of its values"

    @property
    def width(self) -> int:
        """One column of 0 and 1 for each value."""
        return len(self.values) + self.other

    @property
    def unknown(self) -> tuple[float, ...]:
        """No value at all."""
        return (0.0,) * self.width

    def encode(self, cell: object) -> tuple[float, ...]:
        """1 at the value's place."""
        text = text_of(cell)
        place = len(self.values) if self.other and text not in self.values else self.values.index(text)
        return tuple(float(other == place) for other in range(self.width))


@dataclass(frozen=True)
class Flag:
    """A column of true and false, in any of the usual spellings."""

    width = 1
    unknown = (0.5,)
    wants = "true or false"

    def encode(self, cell: object) -> tuple[float, ...]:
        """1 for true, 0 for false."""
        text = text_of(cell).lower()
        if text not in _YES | _NO:
            raise ValueError
        return (float(text in _YES),)


@dataclass(frozen=True)
class Date:
    """A column of dates or times between two public ones, scaled to [0, 1]; `form` is ISO 8601 or a strptime format."""

    low: datetime
    high: datetime
    form: str = "iso"

    width = 1
    unknown = (0.5,)

    @property
    def wants(self) -> str:
        """What a cell must be, in words."""
        return "a date such as 2024-01-31" if self.form == "iso" else f"a date of the form {self.form}"

    def encode(self, cell: object) -> tuple[float, ...]:
        """The date's place between the two, clamped."""
        if isinstance(cell, str) and self.form != "iso":
            cell = datetime.strptime(cell.strip(), self.form)
        low, high = _seconds(self.low), _seconds(self.high)
        return Number(low, high).encode(_seconds(moment(cell)))


def words_of(text: str) -> list[str]:
    """Lower-case words; punctuation separates, apart from the apostrophe."""
    return [word for word in text.lower().translate(_PUNCTUATION).split(" ") if word]


@dataclass(frozen=True)
class Text:
    """A column of text: which of so many buckets its words are hashed into, as a row of length 8."""

    width: int

    wants = "text"
    unknown = ()

    def encode(self, cell: object) -> tuple[float, ...]:
        """The same for the buckets of all words, zero elsewhere."""
        numbers = [0.0] * self.width
        found = {zlib.crc32(word.encode()) % self.width for word in words_of(str(cell))}
        for bucket in found:
            numbers[bucket] = 8 / math.sqrt(len(found))
        return tuple(numbers)


Kind = Number | Choice | Flag | Date | Text


def moment(cell: object) -> datetime:
    """A date or time without a zone, from text or from what data frames hold; one with a zone is brought to UTC.

    >>> moment("2024-01-31"), moment(date(2024, 1, 31)) == moment("2024-01-31T00:00")
    (datetime.datetime(2024, 1, 31, 0, 0), True)
    """
    if isinstance(cell, str):
        cell = datetime.fromisoformat(cell.strip())
    if isinstance(cell, date) and not isinstance(cell, datetime):
        cell = datetime(cell.year, cell.month, cell.day)
    if not isinstance(cell, datetime):
        raise ValueError("not a date")
    return cell.astimezone(UTC).replace(tzinfo=None) if cell.tzinfo is not None else cell


def _seconds(when: datetime) -> float:
    return (when - _START).total_seconds()


@dataclass(frozen=True)
class Column:
    """A kind of cells, and what stands for a missing one.

    `fill` is a public value, or "noisy"; `indicator` adds a column that is 1 where the cell is missing. With neither,
    missing cells are refused, but for text, which then has no words.
    """

    kind: Kind
    fill: object = None
    indicator: bool = False

    @property
    def width(self) -> int:
        """How many numbers a cell becomes."""
        return self.kind.width + self.indicator

    def encode(self, cell: object, markers: Iterable[str] = ()) -> tuple[float, ...]:
        """The numbers of one cell; what is not allowed raises a ValueError that does not tell the cell.

        >>> Column(Number(0, 10), fill=5, indicator=True).encode("")
        (0.5, 1.0)
        """
        listed = isinstance(self.kind, Choice) and text_of(cell) in self.kind.values
        absent = not listed and is_missing(cell, markers)
        if absent and self.fill is None and not self.indicator and not isinstance(self.kind, Text):
            raise ValueError("missing")
        try:
            numbers = self._blank() if absent else self.kind.encode(cell)
        except (ValueError, TypeError, OverflowError):
            raise ValueError(f"not {self.kind.wants}") from None
        return (*numbers, float(absent)) if self.indicator else numbers

    def _blank(self) -> tuple[float, ...]:
        if self.fill is None:
            return self.kind.unknown or self.kind.encode("")  # text without words
        return (math.nan,) * self.kind.width if self.fill == NOISY else self.kind.encode(self.fill)


def read_column(name: str, entry: Mapping[str, object]) -> Column | None:
    """What a schema says of one column; None if it is left out.

    >>> read_column("age", {"low": 0, "high": 100}).kind
    Number(low=0.0, high=100.0)
    """
    if entry.get("skip") is True:
        return None
    column = Column(_kind(name, entry), entry.get("fill"), entry.get("indicator") is True)
    if column.fill == NOISY and isinstance(column.kind, Choice | Text):
        raise ValueError(f"column {name!r}: a choice has no mean, nor has text: give fill a value, or indicator = true")
    if column.fill not in (None, NOISY):
        try:
            column.kind.encode(column.fill)
        except (ValueError, TypeError):
            raise ValueError(f"column {name!r}: fill must be {column.kind.wants}, or {NOISY!r}") from None
    return column


def _kind(name: str, entry: Mapping[str, object]) -> Kind:
    low, high, values = (entry.get(name) for name in ("low", "high", "values"))
    if isinstance(values, list | tuple) and values:
        return Choice(tuple(dict.fromkeys(text_of(value) for value in values)), entry.get("other") is True)
    if entry.get("bool") is True:
        return Flag()
    if isinstance(buckets := entry.get("text"), int) and 2 <= buckets <= 65_536:
        return Text(buckets)
    try:
        if isinstance(form := entry.get("date"), str):
            kind: Number | Date = Date(moment(low), moment(high), form)
        else:
            kind = Number(float(low), float(high))  # type: ignore[arg-type]
        ordered = kind.low < kind.high  # type: ignore[operator]
    except (TypeError, ValueError):
        ordered = False
    if not ordered:
        raise ValueError(f"column {name!r} needs low and high (low < high), values, text, bool = true, or skip = true")
    return kind


@dataclass(frozen=True)
class BadCell:
    """A cell that is not allowed: its row, counted from 0, its column, and what is wrong; never what it holds."""

    row: int
    column: str
    says: str


def encode(
    frame: Frame,
    columns: Mapping[str, Column | None],
    markers: Iterable[str] = (),
    tell: Callable[[BadCell], None] | None = None,
) -> np.ndarray:
    """Every row as numbers, column after column; without `tell`, the first cell that is not allowed is an error.

    >>> encode({"age": ["50", "120"]}, {"age": Column(Number(0, 100))}).tolist()
    [[0.5], [1.0]]
    """
    marked = frozenset(markers)
    parts: list[np.ndarray] = []
    for name, column in columns.items():
        if column is None:
            continue
        known: dict[tuple[type, object], tuple[float, ...]] = {}
        part = np.zeros((len(frame[name]), column.width), np.float32)
        for row, cell in enumerate(frame[name]):
            key = (cell.__class__, cell)
            try:
                part[row] = numbers = known[key] if key in known else column.encode(cell, marked)
                if not isinstance(column.kind, Text):  # which are long, and hardly ever the same twice
                    known[key] = numbers
            except (ValueError, TypeError) as error:  # a type error: a cell that is a list or the like
                if tell is None:
                    raise ValueError(f"a cell of column {name!r} is {error}") from None
                tell(BadCell(row, name, str(error)))
        parts.append(part)
    rows = len(next(iter(frame.values()), ()))
    return np.concatenate(parts, axis=1) if parts else np.zeros((rows, 0), np.float32)
