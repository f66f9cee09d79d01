"""Checkpoints: everything a run needs to go on exactly where it stopped, in one file that is whole or absent."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from reticent.errors import FileWarning, ResumeError, unwritable
from reticent.holding import Hold

VERSION = 2
"""Of the files that are written; those of version 1 have no checksum."""


def write(path: Path, tree: dict[str, Any]) -> None:
    """Write a tree of tensors, numbers, strings and bytes; readable by the owner only, since a secret key is in it."""
    tensors: dict[str, Tensor] = {}
    shape = json.dumps(_pack(tree, tensors))
    meta = {"version": str(VERSION), "tree": shape, "sha256": _digest(shape, tensors)}
    replace_file(path, save(tensors, metadata=meta), mode=0o600)


def read(path: Path) -> dict[str, Any]:
    """The tree that `write` wrote; refuses a file with a single bit changed."""
    try:
        with safe_open(path, framework="pt") as file:
            meta = file.metadata() or {}
            if meta.get("version") not in ("1", str(VERSION)):
                raise ResumeError(f"{path} was written by another version of Reticent (format {meta.get('version')})")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except ResumeError:
        raise
    except Exception as error:
        raise ResumeError(f"{path} cannot be read: {error}. {_REMEDY}") from error
    shape = meta.get("tree", "")
    if meta["version"] == "1":
        warnings.warn(f"{path} is from an older version, without a checksum: it is taken as it is", FileWarning, 2)
    elif meta.get("sha256") != _digest(shape, tensors):
        raise ResumeError(f"{path} is damaged: its checksum is not that of what is in it. {_REMEDY}")
    try:
        return dict(_unpack(json.loads(shape), tensors))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ResumeError(f"{path} is damaged, or not ours: {error}. {_REMEDY}") from error


_REMEDY = "Bring it back from a copy of this very folder's file, or start again in another folder."


def _digest(shape: str, tensors: Mapping[str, Tensor]) -> str:
    """A hash of everything that is stored: the tree, and every tensor with its name, kind and shape."""
    found = hashlib.sha256(shape.encode())
    for name, part in sorted(tensors.items()):
        found.update(json.dumps([name, str(part.dtype), list(part.shape)]).encode())
        found.update(part.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def replace_file(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file so that a crash leaves either the old one or the new one, whole and on disk."""
    new = path.with_name(path.name + ".new")
    try:
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        _sync(path.parent)  # or a power cut could bring the old name back
    except OSError as error:
        raise unwritable(path, error) from error


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, if it is not there; its name is on disk, and theirs."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        for place in missing or [path]:
            _sync(place.absolute().parent)
    except OSError as error:
        raise unwritable(path, error) from error


def _sync(folder: Path) -> None:
    """Put the names in a folder on disk; one that may not be read is not ours to put there."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _pack(value: Any, tensors: dict[str, Tensor]) -> Any:
    """JSON for a tree, with tensors moved aside; every other kind is told apart by a one-key dict."""
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, dict):
        return {"dict": [[_pack(key, tensors), _pack(part, tensors)] for key, part in value.items()]}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_pack(part, tensors) for part in value]}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ResumeError(
        f"cannot store a {type(value).__name__} ({value!r}): an optimizer or scheduler keeps it in its state"
    )


def _unpack(value: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, part),) = value.items()
    match kind:
        case "tensor":
            return tensors[part]
        case "dict":
            return {_unpack(key, tensors): _unpack(item, tensors) for key, item in part}
        case "list":
            return [_unpack(item, tensors) for item in part]
        case "tuple":
            return tuple(_unpack(item, tensors) for item in part)
        case "bytes":
            return bytes.fromhex(part)
    raise ResumeError(f"unknown entry {kind!r} in a checkpoint")


def refuse_changes(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to continue a run whose settings changed, naming the first that did."""
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            raise ResumeError(
                f"the stored run has {name} = {before.get(name)!r}, this one {now.get(name)!r}: "
                "resume with the same settings, or start a new run in another folder"
            )


class Folder:
    """Where a run keeps its ledger and its checkpoint."""

    def __init__(self, path: Path, *, resume: bool, seconds: float):
        self._seconds, self._written, self._claimed = seconds, time.monotonic(), False
        self.ledger = path / "ledger.jsonl"
        self._checkpoint = path / "checkpoint.safetensors"
        make_folder(path)
        if self._checkpoint.exists() and not resume:
            raise ResumeError(f"{path} holds a run already: resume it (resume=True, --resume) or give another folder")
        try:
            self._hold = Hold(path)
        except OSError as error:
            raise unwritable(path, error) from error

    def refuse_if_lost(self) -> None:
        """Refuse to go on where another run of this process does."""
        self._hold.refuse_if_lost()

    def release(self) -> None:
        """Let others in: the run is over."""
        self._hold.release()

    def due(self) -> bool:
        """Whether it is time for the next checkpoint."""
        return time.monotonic() - self._written >= self._seconds

    def write(self, tree: dict[str, Any]) -> None:
        """Write the checkpoint; with a key in it, only into a folder that is claimed."""
        self.refuse_if_lost()
        self._claim_for(tree)
        write(self._checkpoint, tree)
        self._written = time.monotonic()

    def read(self) -> dict[str, Any] | None:
        """The checkpoint, if there is one; with a key in it, not from a copy of the folder."""
        if not self._checkpoint.exists():
            return None
        tree = read(self._checkpoint)
        self._claim_for(tree)
        return tree

    def _claim_for(self, tree: dict[str, Any]) -> None:
        if "randomness" in tree and not self._claimed:
            claim(self._checkpoint.parent)
            self._claimed = True


def claim(folder: Path) -> None:
    """Write down which folder this is, or refuse if that was written down in another one.

    Two folders with one key would put the same noise on what may be other data. A folder that was moved by renaming is
    the same one still: it keeps its inode, and so does the file in it; a copy has neither.
    """
    path, inode = folder / "claim.json", folder.stat().st_ino
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        _same_or_refuse(path, inode)
        return
    except OSError as error:
        raise unwritable(path, error) from error
    with os.fdopen(handle, "w") as file:
        where = {"host": platform.node(), "path": str(folder.resolve()), "folder": inode, "file": path.stat().st_ino}
        json.dump({"id": os.urandom(16).hex(), **where}, file)
        file.flush()
        os.fsync(file.fileno())


def _same_or_refuse(path: Path, inode: int) -> None:
    try:
        known = json.loads(path.read_text())
        same = (known["folder"], known["file"]) == (inode, path.stat().st_ino)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResumeError(
            f"{path} cannot be read: {error}. Delete it if this is the folder in which the run began, not a copy."
        ) from error
    if not same:
        raise ResumeError(
            f"{path.parent} is a copy of {known.get('path')} on {known.get('host')}: going on here too would put the "
            "same noise on other data, which would reveal it. Resume in that folder, or start a new run in another "
            f"one; if that folder is gone for good (moved to another disk), delete {path.name} here."
        )
