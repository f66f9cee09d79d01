"""A schema proposed for a table: from names and types where they suffice, else read from the records, and marked so."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from reticent.data.tables.encoding import Frame, is_missing, moment, text_of
from reticent.data.tables.frames import TEXT, Table, frame_of
from reticent.errors import DataError

Entry = dict[str, object]

MARKERS = ("?", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None", "-")
MOST_VALUES, MOST_CLASSES = 50, 100
SEEN = 10
"""How often a value is seen, at least, to be listed; in small tables less often."""
LABELS = ("label", "target", "class", "y", "outcome", "income")
DATES = ("iso", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d")
BY_NAME: dict[str, tuple[float, float]] = {
    r"(.*[_ -])?age": (0, 100),
    r".*(percent|pct).*": (0, 100),
    r"(.*[_ -])?month": (1, 12),
    r"(.*[_ -])?hour": (0, 23),
    r".*hours?[_ -]per[_ -]week": (0, 100),
    r"(.*[_ -])?year": (1900, 2100),
}
_NAMELESS = re.compile(r"(.*[_ -])?(id|uuid|name|e-?mail|phone|ssn|address)", re.IGNORECASE)
_SPELLED = ({"true", "false"}, {"yes", "no"}, {"t", "f"}, {"y", "n"}, {"0", "1"})


@dataclass(frozen=True)
class ProposedSchema:
    """What a schema could say; `read` names the keys that were found out from the records, column by column."""

    content: Entry
    read: dict[str, tuple[str, ...]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def without(self, name: str | None) -> ProposedSchema:
        """The same with a column left out, such as that of persons.

        >>> ProposedSchema({"columns": {"id": {"values": ["a"]}}}, {"id": ("values",)}).without("id")
        ProposedSchema(content={'columns': {'id': {'skip': True}}}, read={}, notes={})
        """
        columns = self.content.get("columns")
        if not isinstance(columns, dict) or name not in columns:
            return self
        read, notes = ({key: value for key, value in part.items() if key != name} for part in (self.read, self.notes))
        return ProposedSchema({**self.content, "columns": {**columns, name: {"skip": True}}}, read, notes)  # type: ignore[arg-type]

    def told(self) -> str:
        """In words, what was read from the records.

        >>> ProposedSchema({}, {"age": ("low", "high"), "ward": ("values",), "ill": ("classes",)}).told()
        "ranges of 1 column, categories of 1 column, the classes of 'ill'"
        """
        kinds = {"ranges": "low", "categories": "values", "that cells are missing": "indicator"}
        parts = []
        for words, key in kinds.items():
            if count := sum(key in keys for keys in self.read.values()):
                parts.append(f"{words} {'in' if key == 'indicator' else 'of'} {count} column{'s' * (count > 1)}")
        for words, key in (("the classes", "classes"), ("the range", "target")):
            parts += [f"{words} of {name!r}" for name, keys in self.read.items() if key in keys]
        return ", ".join(parts) or "nothing but the header and the types"


def propose(source: Table, *, label: str | None = None, names: Sequence[str] = ()) -> ProposedSchema:
    """A schema for a table; the label is the column of this name, of a usual one, or the last.

    >>> found = propose({"age": [31, 57], "ward": ["north", "south"], "ill": ["no", "yes"]})
    >>> found.read
    {'ward': ('values',), 'ill': ('classes',)}
    """
    head, frame = _opened(source, names)
    named = label or next((name for name in frame if name.lower() in LABELS), list(frame)[-1])
    if named not in frame:
        raise DataError(f"there is no column {named!r} for the label: the columns are {', '.join(frame)}")
    columns: dict[str, Entry] = {}
    read: dict[str, tuple[str, ...]] = {}
    notes: dict[str, str] = {}
    markers = sorted({mark for cells in frame.values() for mark in _marks(cells)})
    for name, cells in frame.items():
        if name != named:
            columns[name], read[name], notes[name] = _column(name, cells, markers)
    told = {name: keys for name, keys in read.items() if keys}
    said = {name: note for name, note in notes.items() if note}
    rest: Entry = {**({"missing": markers} if markers else {}), "columns": columns}
    known = [cell for cell in frame[named] if not is_missing(cell, markers)]
    if (span := _span(known)) is not None:
        return ProposedSchema({**head, "label": named, "target": span, **rest}, {**told, named: ("target",)}, said)
    classes = sorted({text_of(cell) for cell in known}, key=_order)
    if not 2 <= len(classes) <= MOST_CLASSES:
        raise DataError(f"column {named!r} is no label of a few classes: name the column to be predicted with --label")
    return ProposedSchema({**head, "label": named, "classes": classes, **rest}, {**told, named: ("classes",)}, said)


def _span(known: Sequence[object]) -> Entry | None:
    """A round range for a label that is a number: one with a fraction, or with more values than classes have."""
    numbers = [_number(cell) for cell in known]
    values = [number for number in numbers if number is not None and math.isfinite(number)]
    if not values or len(values) < len(numbers):
        return None
    if len(set(values)) <= MOST_CLASSES and all(value.is_integer() for value in values):
        return None
    low, high = wide(min(values), max(values))
    return {"low": low, "high": high}


def _opened(source: Table, names: Sequence[str]) -> tuple[Entry, Frame]:
    """The table, and what a schema must say for it to be opened again."""
    head: Entry = {"names": list(names)} if names else {}
    if not isinstance(source, str | Path) or not str(source).lower().endswith(TEXT):
        return head, frame_of(source)
    coding = None
    try:
        frame = frame_of(source, names=names)
    except DataError as error:
        if "not written in" not in str(error):
            raise
        coding, frame = "latin-1", frame_of(source, coding="latin-1", names=names)
        head["coding"] = coding
    if len(frame) == 1 and (found := next((mark for mark in ";\t|" if mark in next(iter(frame))), None)):
        head["separator"] = found
        frame = frame_of(source, coding=coding, separator=found, names=names)
    return head, frame


def _marks(cells: Sequence[object]) -> set[str]:
    """The usual words for a missing value that stand among numbers; among words they are values like others."""
    texts = {cell.strip() for cell in cells if isinstance(cell, str)}
    marks = texts & set(MARKERS)
    rest = texts - marks - {""}
    return marks if rest and all(_number(text) is not None for text in rest) else set()


def _column(name: str, cells: Sequence[object], markers: Sequence[str]) -> tuple[Entry, tuple[str, ...], str]:
    """What to say of a column, which of it was read from the records, and a note."""
    known = [cell for cell in cells if not is_missing(cell, markers)]
    if not known:
        return {"skip": True}, (), "no value at all"
    if _NAMELESS.fullmatch(name):
        return {"skip": True}, (), "its name is that of an identifier"
    entry, read, note = _kind(name, known)
    if len(known) < len(cells) and "skip" not in entry:
        return {**entry, "indicator": True}, (*read, "indicator"), note
    return entry, read, note


def _kind(name: str, known: Sequence[object]) -> tuple[Entry, tuple[str, ...], str]:
    texts = Counter(text_of(cell) for cell in known)
    if {text.lower() for text in texts} in _SPELLED:
        return {"bool": True}, (), ""
    numbers = [_number(cell) for cell in known]
    values = [number for number in numbers if number is not None and math.isfinite(number)]
    if values and None not in numbers:
        by_name = next((span for form, span in BY_NAME.items() if re.fullmatch(form, name, re.IGNORECASE)), None)
        if by_name is not None:
            return {"low": by_name[0], "high": by_name[1]}, (), "by its name; values beyond are clamped"
        low, high = wide(min(values), max(values))
        return {"low": low, "high": high}, ("low", "high"), ""
    if dates := _dates(known):
        return dates, ("low", "high"), ""
    if len(texts) > MOST_VALUES:
        return {"skip": True}, (), "too many values for a choice; if it is text, say text = 4096"
    often = sorted((text for text, count in texts.items() if count >= min(SEEN, len(known) // 50)), key=_order)
    return {"values": often, "other": True}, ("values",), "rare values are not listed: they would point at few people"


def _dates(known: Sequence[object]) -> Entry | None:
    for form in DATES:
        read: Callable[[object], datetime] = moment
        if form != "iso":
            read = _formed(form)
        try:
            found = [read(cell) for cell in known]
        except (ValueError, TypeError):
            continue
        low, high = min(found).year, max(found).year + 1
        return {"date": form, "low": f"{low - low % 10:04}-01-01", "high": f"{high - high % 10 + 10:04}-01-01"}
    return None


def _formed(form: str) -> Callable[[object], datetime]:
    return lambda cell: datetime.strptime(str(cell).strip(), form)


def _number(cell: object) -> float | None:
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _order(text: str) -> tuple[float, str]:
    number = _number(text)
    return (math.inf if number is None or math.isnan(number) else number, text)


def wide(low: float, high: float) -> tuple[float, float]:
    """A range of round numbers around another: it tells less of the least and the most than these would.

    >>> wide(17, 93), wide(0, 99999), wide(1953, 2021), wide(3.2, 3.2)
    ((10.0, 100.0), (0.0, 100000.0), (1950.0, 2030.0), (3.0, 4.0))
    """
    step = 10.0 ** math.floor(math.log10(high - low)) if high > low else 1.0
    bottom, top = (float(f"{side:.12g}") for side in (math.floor(low / step) * step, math.ceil(high / step) * step))
    return (bottom, top) if bottom < top else (bottom, bottom + step)
