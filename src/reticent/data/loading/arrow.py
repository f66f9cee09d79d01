"""Arrow files that stay on disk: rows are read as they are drawn; Parquet is unpacked to one such file first."""

from __future__ import annotations

import hashlib
import importlib
import secrets
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reticent.data.loading.arrays import file_digest
from reticent.data.loading.places import cache_folder
from reticent.errors import DataError, FileWarning
from reticent.files import make_folder, private_folder, write_private
from reticent.inside.columns import MOST_BYTES, MOST_EXAMPLES
from reticent.reading import reading

ROWS = 2**16
"""So many rows of a Parquet file are in memory at a time while it is unpacked."""


@dataclass(frozen=True, eq=False)
class ArrowExamples:
    """Rows of a table as pairs (x, y): numbers of some columns, or one column of lists of one length, and a label.

    A row where the label is missing, or one of its lists, counts for nothing: its input is not a number.
    """

    table: Any
    """The columns that are needed, of a `pyarrow.Table`."""
    inputs: tuple[str, ...]
    label: str
    width: int

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def at_once(self) -> int:
        """As many as fit."""
        return max(1, min(MOST_BYTES // (4 * self.width + 8), MOST_EXAMPLES))

    def as_store(self) -> ArrowExamples:
        """Itself."""
        return self

    def take(self, index: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """The rows of these numbers."""
        rows = self.table.take(index)
        x = np.concatenate([_floats(rows[name]) for name in self.inputs], axis=1)
        label = rows[self.label]
        missing = np.asarray(label.is_null())
        x[missing] = np.nan
        y = label.fill_null(0).to_numpy() if label.null_count else label.to_numpy()
        return torch.from_numpy(x), torch.from_numpy(np.array(y))


def arrow(source: str | Path | Any, *, inputs: str | Sequence[str], label: str) -> ArrowExamples:
    """Examples of an Arrow or Parquet file, or of a `pyarrow.Table`, of any size.

    A Parquet file cannot be read row by row: it is unpacked once, to `private/` in the cache folder.

    >>> import pyarrow as pa
    >>> rows = arrow(pa.table({"a": [1, 2], "b": [0.5, None], "y": [0, 1]}), inputs=["a", "b"], label="y")
    >>> rows.take(np.array([1]))
    (tensor([[2., nan]]), tensor([1]))
    """
    table = _table(source) if isinstance(source, str | Path) else source
    names = (inputs,) if isinstance(inputs, str) else tuple(inputs)
    for name in (*names, label):
        if name not in table.column_names:
            raise DataError(f"there is no column {name!r}: there are {', '.join(table.column_names)}")
    types, kind = importlib.import_module("pyarrow.types"), table.schema.field(label).type
    if not (types.is_integer(kind) or types.is_floating(kind)):
        raise DataError(
            f"the label {label!r} is of type {kind}: give whole numbers for classes, or a number to predict"
        )
    width = sum(_width(table.schema.field(name), types) for name in names)
    return ArrowExamples(table.select([*names, label]), names, label, width)


def _width(field: Any, types: Any) -> int:
    """How many numbers a column gives to each row."""
    inner, count = (
        (field.type.value_type, field.type.list_size) if types.is_fixed_size_list(field.type) else (field.type, 1)
    )
    if not (types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner)):
        raise DataError(
            f"column {field.name!r} is of type {field.type}: give numbers, or lists of numbers that all have one "
            "length (a fixed_size_list); a table of other things is read by a schema, data.table(file, schema)"
        )
    return int(count)


def _floats(column: Any) -> NDArray[np.float32]:
    """A column of rows as numbers; what is missing is not a number."""
    whole = column.combine_chunks()
    rows, there = len(whole), np.asarray(whole.is_valid())
    if hasattr(whole.type, "list_size"):
        found = np.full((rows, whole.type.list_size), np.nan, np.float32)
        if there.any():
            found[there] = whole.flatten().to_numpy(zero_copy_only=False).reshape(-1, whole.type.list_size)
        return found
    found = np.full((rows, 1), np.nan, np.float32)
    found[there, 0] = whole.drop_null().to_numpy(zero_copy_only=False)
    return found


def _table(source: str | Path) -> Any:
    """A file as a table whose columns lie on disk."""
    path = Path(source)
    try:
        arrow = importlib.import_module("pyarrow")
        ipc = importlib.import_module("pyarrow.ipc")
    except ImportError as error:
        raise DataError("Arrow and Parquet files need pyarrow: pip install 'reticent[tables]'") from error
    with reading(path, "it is damaged, or no Arrow or Parquet file", quote=False):
        place = _unpacked(path, arrow) if path.suffix in (".parquet", ".pq") else path
        mapped = arrow.memory_map(str(place))
        try:
            found = ipc.open_file(mapped).read_all()
        except arrow.ArrowInvalid:  # `datasets` keeps streams
            mapped.seek(0)
            found = ipc.open_stream(mapped).read_all()
        found.validate()  # or a number in a hostile file could send us anywhere in memory
        _ = found.column_names  # which may be no text
        return found


def _unpacked(path: Path, arrow: Any) -> Path:
    """A Parquet file as an Arrow file in the cache, for its owner alone; it takes its name when it is whole."""
    about = path.stat()
    key = hashlib.sha256(f"{path.resolve()} {about.st_size} {about.st_mtime_ns}".encode()).hexdigest()[:32]
    folder = private_folder(cache_folder()) / "unpacked"
    place, sums = folder / f"{path.stem}-{key}.arrow", folder / f"{path.stem}-{key}.sha256"
    if place.exists():
        if sums.exists() and sums.read_text() == file_digest(place):
            return place
        warnings.warn(f"{place} is damaged: it is made again", FileWarning, stacklevel=4)
    make_folder(folder, mode=0o700)
    file = importlib.import_module("pyarrow.parquet").ParquetFile(path)
    fresh = folder / f".{place.name}-{secrets.token_hex(4)}"
    try:
        fresh.touch(0o600)
        with arrow.OSFile(str(fresh), "wb") as sink, arrow.ipc.new_file(sink, file.schema_arrow) as writer:
            for batch in file.iter_batches(ROWS):
                writer.write_batch(batch)
        write_private(sums, file_digest(fresh).encode())
        fresh.replace(place)
    finally:
        fresh.unlink(missing_ok=True)
    return place
