"""The rows of a text file.

Only the standard library: an exported model takes this file along.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable


class WrongCoding(ValueError):  # noqa: N818 - reads better where it is raised
    """Bytes that are no text in the coding that was declared."""


def read_rows(raw: bytes, *, coding: str | None = None, separator: str | None = None) -> Iterable[list[str]]:
    """The rows of a CSV file's bytes, without blank lines; a mark at their start tells the coding, else UTF-8."""
    marks = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
    found = next((name for mark, name in marks.items() if raw.startswith(mark)), coding or "utf-8")
    try:
        text = raw.decode(found)
    except UnicodeDecodeError:
        raise WrongCoding(f'is not written in {found}: declare another coding, such as coding = "latin-1"') from None
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator or ",", skipinitialspace=True)
    return (row for row in lines if row)
