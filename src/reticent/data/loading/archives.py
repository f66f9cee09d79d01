"""Named members of a folder, a tar or a zip archive, read without unpacking; and pickles that hold only arrays."""

from __future__ import annotations

import codecs
import io
import pickle
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from reticent.errors import DataError


def read_members(path: Path, names: Iterable[str]) -> dict[str, bytes]:
    """The bytes of these members of a folder or archive; one that is missing is an error that names it.

    >>> read_members(Path(__file__).parent, ["archives.py"])["archives.py"][:9]
    b'\"\"\"Named '
    """
    wanted = list(names)
    if path.is_dir():
        found = {name: (path / name).read_bytes() for name in wanted if (path / name).is_file()}
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            found = {name: archive.read(name) for name in wanted if name in archive.namelist()}
    else:
        found = _read_tar(path, set(wanted))
    absent = [name for name in wanted if name not in found]
    if absent:
        raise DataError(f"{path} does not contain {', '.join(absent)}")
    return found


def _read_tar(path: Path, wanted: set[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tarfile.open(path) as archive:
        for member in archive:  # once through: seeking back in a compressed archive would read it again
            name = member.name.removeprefix("./")
            file = archive.extractfile(member) if name in wanted else None
            if file is not None:
                found[name] = file.read()
            if len(found) == len(wanted):
                break
    return found


class _ArraysOnly(pickle.Unpickler):
    """Unpickles arrays, lists and dicts; anything that could run code is refused."""

    _REBUILD = np.empty(0).__reduce__()[0]

    def find_class(self, module: str, name: str) -> object:
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            return self._REBUILD
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        if (module, name) == ("_codecs", "encode"):  # how newer Pythons write bytes for older ones
            return codecs.encode
        raise DataError(f"the pickle asks for {module}.{name}, which a dataset has no use for: not opened")


def unpickle_arrays(raw: bytes) -> dict[bytes, Any]:
    """Open a pickled dictionary of arrays, such as the official CIFAR batches, without trusting it.

    >>> unpickle_arrays(pickle.dumps({b"labels": [1, 2]}))
    {b'labels': [1, 2]}
    """
    answer: dict[bytes, Any] = _ArraysOnly(io.BytesIO(raw), encoding="bytes").load()
    return answer
