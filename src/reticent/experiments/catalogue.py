"""Everything that can be trained by name: the methods of the pipeline, and the defences outside it."""

from __future__ import annotations

from typing import Any

from reticent import methods


def listing() -> list[dict[str, Any]]:
    """The table of all of them.

    >>> {"dpsur", "dpis"} <= {row["name"] for row in listing()}
    True
    """
    return methods.listing()
