"""Adjacency: which two datasets a guarantee says cannot be told apart."""

from __future__ import annotations

from typing import Literal, get_args

from reticent.errors import SettingError, UnknownName

Adjacency = Literal["zero-out", "add-or-remove", "replace"]
"""Which datasets are neighbours: one example's contribution removed, one example more or less, or one exchanged."""

Unit = Literal["example", "person"]
"""Whose contribution is hidden: one row of the data, or all rows of one person."""

_WORDS: dict[Unit, dict[Adjacency, str]] = {
    "example": {
        "zero-out": "one example's contribution removed or added, the number of examples being public",
        "add-or-remove": "add or remove one example",
        "replace": "replace one example",
    },
    "person": {
        "zero-out": "one person's contribution (all their rows) removed or added, the number of persons being public",
        "add-or-remove": "add or remove one person (all their rows)",
        "replace": "replace one person (all their rows)",
    },
}

_BEFORE_NAMES = _WORDS["example"]["add-or-remove"]
"""What files said before there were names, for runs whose rate came from the data's length: they mean zero-out."""


def in_words(adjacency: Adjacency, unit: Unit = "example") -> str:
    """What two neighbouring datasets differ by.

    >>> in_words("add-or-remove", "person")
    'add or remove one person (all their rows)'
    """
    return _WORDS[unit][adjacency]


def check_unit(name: str) -> Unit:
    """The unit of this name, or an error that tells which there are.

    >>> check_unit("person")
    'person'
    """
    for known in get_args(Unit):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise UnknownName("unit of privacy", name, get_args(Unit))


def check_adjacency(name: str) -> Adjacency:
    """The adjacency of this name, or an error that tells which there are.

    >>> check_adjacency("replace")
    'replace'
    """
    for known in get_args(Adjacency):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise UnknownName("adjacency", name, get_args(Adjacency))


def read_adjacency(text: str) -> Adjacency:
    """The adjacency that a file tells of, older ones included.

    >>> read_adjacency("add or remove one example"), read_adjacency("add-or-remove")
    ('zero-out', 'add-or-remove')
    """
    return "zero-out" if text == _BEFORE_NAMES else check_adjacency(text)


def adjacency_of(size: int | None, wanted: str | None) -> Adjacency:
    """What holds of a run with a declared size, or with none, unless something else is wanted that holds as well.

    >>> adjacency_of(None, None), adjacency_of(1000, None), adjacency_of(None, "replace")
    ('zero-out', 'add-or-remove', 'replace')
    """
    if size is not None and size < 1:
        raise SettingError(f"the declared number of examples is {size}: it must be at least 1")
    if wanted is None:
        return "zero-out" if size is None else "add-or-remove"
    if size is None and wanted == "add-or-remove":
        raise SettingError(
            "one example more or less changes the rate of all others, unless the number of examples is declared: "
            "give size, or take adjacency zero-out or replace"
        )
    return check_adjacency(wanted)
