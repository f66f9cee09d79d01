"""Tables of any origin by their columns: CSV, Parquet and Arrow files, pandas, polars and Arrow tables, dicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Protocol, runtime_checkable

from reticent.data.loading.archives import gunzip, refuse_beyond
from reticent.data.tables.encoding import Frame
from reticent.data.tables.rows import WrongCoding, read_rows
from reticent.errors import DataError
from reticent.reading import reading

TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
ARROW = {".parquet": "pyarrow.parquet", ".arrow": "pyarrow.feather", ".feather": "pyarrow.feather"}
SUFFIXES = (*TEXT, *ARROW)


@runtime_checkable
class DataFrame(Protocol):
    """What pandas and polars have in common."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns."""
        ...

    def __getitem__(self, name: str) -> object: ...


Table = DataFrame | Mapping[str, Sequence[object]] | str | Path
"""Anything that can be read as a table."""


def is_table(source: object) -> bool:
    """Whether something is a table, or a file that holds one.

    >>> is_table({"age": [3]}), is_table("people.csv"), is_table([3])
    (True, True, False)
    """
    return is_frame(source) or (isinstance(source, str | Path) and str(source).lower().endswith(SUFFIXES))


def is_frame(source: object) -> bool:
    """Whether something is a table in memory."""
    named = getattr(source, "column_names", None)  # as Arrow says it
    return (
        isinstance(source, Mapping) or named is not None or (isinstance(source, DataFrame) and hasattr(source, "shape"))
    )


def frame_of(
    source: Table, *, coding: str | None = None, separator: str | None = None, names: Sequence[str] = ()
) -> Frame:
    """The columns of a table; `names` are those of a text file without a header.

    >>> frame_of({"age": [50, None]})
    {'age': [50, None]}
    """
    if not isinstance(source, str | Path):
        return _columns(source)
    path = Path(source)
    if not path.is_file():
        raise DataError(f"there is no table {path}")
    if not str(path).lower().endswith(TEXT):
        return _arrow(path)
    header, rows = cells_of(path, coding=coding, separator=separator, names=names)
    for row in rows:
        if len(row) != len(header):
            raise DataError(
                f"{path}: a row has {len(row)} cells, but the header has {len(header)}; "
                f"`reticent data check {path}` says which"
            )
    if not rows:
        raise DataError(f"{path} has a header but no rows")
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def cells_of(
    path: Path, *, coding: str | None = None, separator: str | None = None, names: Sequence[str] = ()
) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a text file, as they are."""
    tab = "\t" if ".tsv" in path.name.lower() else None
    with reading(path, "it must be a table of text, in the coding that was declared", quote=False):
        raw = gunzip(path) if path.suffix == ".gz" else path.read_bytes()
        try:
            rows = list(read_rows(raw, coding=coding, separator=separator or tab))
        except WrongCoding as error:
            raise DataError(f"{path} {error}") from None
    header = list(names) or [name.strip() for name in next(iter(rows), [])]
    if not header:
        raise DataError(f"{path} is empty: the first line must name the columns")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise DataError(f"{path}: the first line names {twice[0]!r} twice: every column needs a name of its own")
    if not names and all(_is_number(name) for name in islice(header, 1)):
        raise DataError(
            f"{path}: the first line must name the columns, and it begins with a number; add such a line, or declare "
            'names = ["age", ...] in the schema (`reticent data schema --names age,...`)'
        )
    return header, rows if names else rows[1:]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _columns(source: object) -> Frame:
    """The columns of a table in memory, as lists of Python's own values."""
    if isinstance(source, Mapping):
        return {str(name).strip(): list(values) for name, values in source.items()}
    names = getattr(source, "column_names", None) or getattr(source, "columns", None)
    if names is None:
        raise DataError(f"a {type(source).__name__} is no table: give a file, a data frame or a dict of columns")
    return {str(name).strip(): _values(source[name]) for name in names}  # type: ignore[index]


def _values(series: object) -> list[object]:
    for verb in ("tolist", "to_list", "to_pylist"):  # pandas, polars, Arrow
        if hasattr(series, verb):
            found: list[object] = getattr(series, verb)()
            return found
    raise DataError(f"a {type(series).__name__} is no column: two columns of the table may have one name")


def _arrow(path: Path) -> Frame:
    suffix = path.suffix.lower()
    if suffix not in ARROW:
        raise DataError(f"{path} is no table that can be read: {', '.join(SUFFIXES)} can")
    try:
        reader = import_module(ARROW[suffix])
    except ImportError:
        raise DataError(f"{suffix} files need the package pyarrow: pip install 'reticent[tables]'") from None
    with reading(path, f"it is no {suffix[1:]} file", quote=False):
        if suffix == ".parquet":  # a few bytes can stand for any number of equal cells
            about = reader.ParquetFile(path).metadata
            refuse_beyond(8 * about.num_rows * about.num_columns, path)
        found = reader.read_table(path)
        found.validate(full=True)  # or a number in a hostile file could send us anywhere in memory
        return _columns(found)
