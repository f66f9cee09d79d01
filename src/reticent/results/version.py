"""The version of results: what this Reticent writes, and what it refuses to misread."""

from __future__ import annotations

from collections.abc import Iterable

from reticent.errors import DataError
from reticent.results.fields import Fields

VERSION = 1
"""Of the fields and what they mean; files without a version are older than the first."""


def refuse_newer(told: Fields, known: Iterable[str]) -> None:
    """Refuse a result of a newer version, and fields that are not known: to leave them out would be to misread it."""
    version = told.get("version", int) or 0
    if version > VERSION:
        raise DataError(
            f"{told.where} is a result of version {version}, and this Reticent reads up to version {VERSION}: read it "
            "with the Reticent that wrote it, or a newer one (pip install --upgrade reticent)"
        )
    told.only(known)
