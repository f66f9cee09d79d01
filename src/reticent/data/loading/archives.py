"""Named members of a folder, a tar or a zip archive, read without unpacking, and never more than there may be."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from reticent.errors import DataError
from reticent.reading import reading

LIMIT = 1 << 32
"""So many bytes at most come out of an archive: one that holds more was made to fill the memory."""
MEMBERS = 1_000_000
_HALF = "it is damaged, or was copied by half: bring it back whole"


def read_members(path: Path, names: Iterable[str]) -> dict[str, bytes]:
    """The bytes of these members of a folder or archive; one that is missing is an error that names it.

    >>> read_members(Path(__file__).parent, ["archives.py"])["archives.py"][:9]
    b'\"\"\"Named '
    """
    wanted = list(names)
    with reading(path, _HALF):
        if path.is_dir():
            found = {name: (path / name).read_bytes() for name in wanted if (path / name).is_file()}
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                check_zip(archive, path)
                found = {name: archive.read(name) for name in wanted if name in archive.namelist()}
        else:
            found = _read_tar(path, set(wanted))
    absent = [name for name in wanted if name not in found]
    if absent:
        raise DataError(f"{path} does not contain {', '.join(absent)}")
    return found


def check_zip(archive: zipfile.ZipFile, path: Path) -> None:
    """Refuse a zip archive that says that it holds too much; Python reads no more of a member than it says."""
    refuse_beyond(sum(member.file_size for member in archive.infolist()), path)


def tar_members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The files of a tar archive, one after the other; seeking back in a compressed one would read it again."""
    with tarfile.open(path) as archive:
        size = 0
        for number, member in enumerate(archive):
            size += member.size
            refuse_beyond(size if number < MEMBERS else LIMIT + 1, path)
            file = archive.extractfile(member) if member.isreg() else None
            if file is not None:
                yield member.name.removeprefix("./"), file


def _read_tar(path: Path, wanted: set[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name, file in tar_members(path):
        if name in wanted:
            found[name] = file.read()
        if len(found) == len(wanted):
            break
    return found


def gunzip(path: Path) -> bytes:
    """The content of a gzipped file."""
    with gzip.open(path) as file:
        return _bounded(file, path)


def unxz(raw: bytes, path: Path) -> bytes:
    """The content of bytes that were compressed by xz."""
    with lzma.open(io.BytesIO(raw)) as file:
        return _bounded(file, path)


def _bounded(file: io.BufferedIOBase, path: Path) -> bytes:
    found = file.read(LIMIT + 1)
    refuse_beyond(len(found), path)
    return found


def refuse_beyond(size: int, path: Path) -> None:
    """Refuse what would unpack to more than any dataset of ours does."""
    if size > LIMIT:
        raise DataError(
            f"{path} unpacks to more than {LIMIT >> 30} GiB: not opened. If that is right, unpack it and give the files"
        )
