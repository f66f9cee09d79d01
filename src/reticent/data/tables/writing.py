"""A proposal as a schema file: every line that was read from private records says so."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from reticent.data.tables.proposing import ProposedSchema

READ = "# READ FROM THE RECORDS"
HEAD = """\
# A proposal. Whoever sees the model may learn what this file says, so it must be public knowledge.
# Lines marked `{read}` were found out from the private records: put what is known beforehand in their place
# (a wide round range, a published list), skip the column, or keep them only if they are public knowledge anyway.
# A scale that nobody knows is released with noise: declare a wide range, and train with --set statistics_noise=20.
"""
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def to_toml(found: ProposedSchema) -> str:
    """The text of a schema file.

    >>> columns = {"age": {"low": 0, "high": 9}}
    >>> text = to_toml(ProposedSchema({"label": "y", "columns": columns}, {"age": ("low", "high")}))
    >>> print(text[text.index("[") :], end="")
    [columns.age]
    low = 0    # READ FROM THE RECORDS
    high = 9    # READ FROM THE RECORDS
    """
    lines = [HEAD.format(read=READ.removeprefix("# "))]
    everywhere = {key for keys in found.read.values() for key in keys} & {"classes", "target", "size", "channels"}
    lines += _entries({name: value for name, value in found.content.items() if name != "columns"}, everywhere)
    columns = found.content.get("columns", {})
    assert isinstance(columns, Mapping)
    for name, entry in columns.items():
        note = f"    # {found.notes[name]}" if name in found.notes else ""
        lines += ["", f"[columns.{_key(name)}]{note}", *_entries(entry, found.read.get(name, ()))]
    return "\n".join(lines) + "\n"


def _entries(entry: Mapping[str, object], read: Sequence[str] | set[str]) -> list[str]:
    return [f"{_key(name)} = {_value(name, value)}{f'    {READ}' * (name in read)}" for name, value in entry.items()]


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _value(name: str, value: object) -> str:
    """A TOML value; JSON writes text, numbers and lists as TOML does."""
    if name in ("low", "high") and isinstance(value, str) and _DAY.fullmatch(value):
        return value
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(part)} = {_value(part, inner)}' for part, inner in value.items())} }}"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
