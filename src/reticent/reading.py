"""Reading what others wrote, or what was damaged: whatever a decoder raises becomes an error that says what to do.

Decoders of archives, images, arrays, tables and JSON fail in dozens of ways, most of them not written down anywhere:
whatever comes out of one while it looks at a file is the file's fault, and is told as that.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reticent.errors import DataError, ReticentError

DAMAGED = "it is damaged, or not ours: bring it back as it was, or take it away"


@contextmanager
def reading(
    what: str | Path,
    remedy: str = DAMAGED,
    *,
    error: type[ReticentError] = DataError,
    quote: bool = True,
) -> Iterator[None]:
    """Turn whatever is raised while something is read into an error that names it and the remedy.

    Without `quote` the reason is told by its kind only: what a decoder says of private data may repeat them.

    >>> with reading("cells.csv", "mend it", quote=False):
    ...     int("secret")
    Traceback (most recent call last):
    reticent.errors.DataError: cannot read cells.csv (ValueError): mend it
    """
    try:
        yield
    except ReticentError:
        raise
    except Exception as found:
        reason = _reason(found) if quote else type(found).__name__
        raise error(f"cannot read {what} ({reason}): {remedy}") from (found if quote else None)


def _reason(found: Exception) -> str:
    """Why, in few words; some errors say nothing, some quote whole files."""
    said = (found.strerror if isinstance(found, OSError) else None) or str(found) or type(found).__name__
    if isinstance(found, KeyError):
        said = f"{said} is missing"
    return said if len(said) <= 200 else f"{said[:200]}..."


def read_text(path: Path, *, coding: str = "utf-8") -> str:
    """The text of a file."""
    with reading(path):
        return path.read_text(coding)


def parse_json(text: str | bytes, where: str) -> object:
    """What a text of JSON holds.

    >>> parse_json("{", "job.json")
    Traceback (most recent call last):
    reticent.errors.DataError: job.json is not JSON: ...
    """
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not JSON: {_reason(error)}; it is damaged, or not ours: take it away") from error
    return found


def read_json(path: Path) -> object:
    """What a file of JSON holds."""
    return parse_json(read_text(path), str(path))


def read_toml(path: Path, *, error: type[ReticentError] = DataError) -> dict[str, Any]:
    """What a file of TOML holds; with the mark that some editors put in front of UTF-8, or without.

    >>> read_toml(Path("none.toml"))
    Traceback (most recent call last):
    reticent.errors.DataError: cannot read none.toml (No such file or directory): write it anew, in UTF-8
    """
    with reading(path, "write it anew, in UTF-8", error=error):
        text = path.read_text("utf-8-sig")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as found:
        raise error(f"{path} is not valid TOML: {_reason(found)}") from found
