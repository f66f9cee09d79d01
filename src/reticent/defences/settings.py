"""Settings by name: sorted into the frozen parts they belong to, so that a misspelt one is named and not ignored."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias, TypeVar

from reticent.defences.plain import Plain
from reticent.errors import UnknownName

# A setting by its name: each dataclass says which type it takes, and refuses others.
Settings: TypeAlias = dict[str, Any]
T = TypeVar("T")


def sort_settings(defence: type[T], given: Settings) -> tuple[T, Plain]:
    """A defence's own settings and those of plain training, from one flat list.

    >>> sort_settings(Plain, {"epochs": 3})[1].epochs
    3
    """
    own, shared = field_names(defence), field_names(Plain)
    for name in given:
        if name not in own | shared:
            raise UnknownName(f"setting of {defence.__name__}", name, own | shared)
    parts = ({name: value for name, value in given.items() if name in names} for names in (own, shared))
    return defence(**next(parts)), Plain(**next(parts))


def field_names(kind: type) -> Settings:
    """The settings of a frozen part with their defaults.

    >>> field_names(Plain)["batch_size"]
    128
    """
    return {part.name: part.default for part in dataclasses.fields(kind)}
