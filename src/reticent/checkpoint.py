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
from torch import Tensor

from reticent.errors import FileWarning, ResumeError, unwritable
from reticent.files import PRIVATE, clear_unfinished, make_folder, private_folder, remove, replacing, stored_at, sync
from reticent.holding import Hold
from reticent.reading import reading
from reticent.tensors import SEAL, digest_of, read_tensors, write_sealed

VERSION = 3
"""Of the files that are written; those of version 1 have no checksum, those of version 2 another."""
CHECKPOINT, ROUNDS = "checkpoint.safetensors", "rounds.jsonl"
"""What a run goes on from, in its private folder, and what is told of its rounds, beside it."""
SHARE = 0.05
"""At most this much of the time goes into checkpoints."""
_REMEDY = "Bring it back from a copy of this very folder's file, or start again in another folder."


def write(path: Path, tree: dict[str, Any]) -> None:
    """Write a tree of tensors, numbers, strings and bytes; readable by the owner only, since a secret key is in it."""
    PackedTree(tree).write(path)


class PackedTree:
    """A tree as a file holds it: tensors apart, the rest in words. With `copy` it is what it was at this moment."""

    def __init__(self, tree: dict[str, Any], *, copy: bool = False):
        self._tensors: dict[str, Tensor] = {}
        self._shape = json.dumps(_pack(tree, self._tensors))
        if copy:
            self._tensors = {name: part.detach().clone() for name, part in self._tensors.items()}

    def write(self, path: Path) -> None:
        """Write it; the checksum is part of the file."""
        write_sealed(path, self._tensors, {"version": str(VERSION), "tree": self._shape})


def read(path: Path) -> dict[str, Any]:
    """The tree that `write` wrote; refuses a file with a single bit changed."""
    tensors, meta = read_tensors(path, _REMEDY)
    if meta.get("version") not in ("1", "2", str(VERSION)):
        raise ResumeError(f"{path} was written by another version of Reticent (format {meta.get('version')})")
    shape = meta.get("tree", "")
    if meta["version"] == "1" and SEAL not in meta:
        warnings.warn(f"{path} is from an older version, without a checksum: it is taken as it is", FileWarning, 2)
    elif meta.get(SEAL) != _digest(meta, tensors):
        raise ResumeError(f"{path} is damaged: its checksum is not that of what is in it. {_REMEDY}")
    with reading(path, _REMEDY, error=ResumeError):
        return dict(_unpack(json.loads(shape), tensors))


def _digest(meta: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    """A hash of everything that is stored: the tree, and every tensor with its name, kind and shape."""
    if meta["version"] != "2":
        return digest_of(tensors, meta)
    found = hashlib.sha256(meta.get("tree", "").encode())
    for name, part in sorted(tensors.items()):
        found.update(json.dumps([name, str(part.dtype), list(part.shape)]).encode())
        found.update(part.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def _pack(value: Any, tensors: dict[str, Tensor]) -> Any:
    """JSON for a tree, with tensors moved aside; every other kind is told apart by a one-key dict."""
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value
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


def checkpoint_of(folder: Path) -> Path:
    """Where the checkpoint of the run in a folder is."""
    return stored_at(folder, CHECKPOINT)


class Folder:
    """Where a run keeps its ledger and its checkpoint."""

    def __init__(self, path: Path, *, resume: bool, seconds: float):
        self._seconds, self._written, self._claimed, self._cost = seconds, time.monotonic(), False, 0.0
        self._failed: list[Exception] = []
        self._path = path
        self.ledger = path / "ledger.jsonl"
        make_folder(path)
        if checkpoint_of(path).exists() and not resume:
            raise ResumeError(f"{path} holds a run already: resume it (resume=True, --resume) or give another folder")
        try:
            self._hold = Hold(path)
        except OSError as error:
            raise unwritable(path, error) from error
        clear_unfinished(path)
        clear_unfinished(path / PRIVATE)

    def refuse_if_lost(self) -> None:
        """Refuse to go on where another run of this process does."""
        self._hold.refuse_if_lost()

    def release(self) -> None:
        """Let others in: the run is over."""
        self._wait()
        self._hold.release()

    def due(self) -> bool:
        """Whether it is time for the next checkpoint: as often as asked for, if that takes a small share of the time.

        Asked for after no seconds at all, there is one after every round, whatever it costs.
        """
        pause = max(self._seconds, self._cost / SHARE) if self._seconds else 0.0
        return time.monotonic() - self._written >= pause and not self._hold.busy()

    def write(self, tree: dict[str, Any], *, behind: bool = False) -> None:
        """Write the checkpoint; with a key in it, only into a folder that is claimed.

        `behind`: what the tree holds now is written while the run goes on. A crash before that is done leaves the
        checkpoint before, from which the same rounds come again, charged once.
        """
        self.refuse_if_lost()
        self._wait()
        start = time.monotonic()
        self._claim_for(tree)
        sync(self._path / ROUNDS)  # a round that the checkpoint knows of is not told of again
        behind = behind and self._seconds > 0
        packed = PackedTree(tree, copy=behind)
        private_folder(self._path)
        if behind:
            self._hold.meanwhile(lambda: self._put_or_remember(packed, start))
        else:
            self._put(packed, start)

    def _put(self, packed: PackedTree, start: float) -> None:
        packed.write(self._path / PRIVATE / CHECKPOINT)
        remove(self._path / CHECKPOINT)  # where older versions had it
        self._written = time.monotonic()
        self._cost = self._written - start

    def _put_or_remember(self, packed: PackedTree, start: float) -> None:
        try:
            self._put(packed, start)
        except Exception as error:
            self._failed.append(error)

    def _wait(self) -> None:
        """Wait for what is being written; what kept it from being written is told here."""
        self._hold.wait()
        if self._failed:
            raise self._failed.pop()

    def read(self) -> dict[str, Any] | None:
        """The checkpoint, if there is one; with a key in it, not from a copy of the folder."""
        path = checkpoint_of(self._path)
        if not path.exists():
            return None
        tree = read(path)
        self._claim_for(tree)
        return tree

    def _claim_for(self, tree: dict[str, Any]) -> None:
        if "randomness" in tree and not self._claimed:
            claim(self._path)
            self._claimed = True


def claim(folder: Path) -> None:
    """Write down which folder this is, or refuse if that was written down in another one.

    Two folders with one key would put the same noise on what may be other data. A folder that was moved by renaming is
    the same one still: it keeps its inode, and so does the file in it; a copy has neither.
    """
    path, inode = folder / "claim.json", folder.stat().st_ino
    if path.exists():
        _same_or_refuse(path, inode)
        return
    with replacing(path, mode=0o600) as file:  # whoever claims a folder holds it: nobody else is about to
        place = {"folder": inode, "file": os.fstat(file.fileno()).st_ino}
        where = {"host": platform.node(), "path": str(folder.resolve())}
        file.write(json.dumps({"id": os.urandom(16).hex(), **where, **place}).encode())


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
