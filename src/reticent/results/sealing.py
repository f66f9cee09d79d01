"""Sealing: JSON that carries a checksum of itself, so that a change of it is named instead of read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from reticent.errors import DataError
from reticent.reading import read_json

SEAL = "sha256"


def seal(data: Mapping[str, object], *, indent: int | None = None) -> bytes:
    """An object as JSON, with the checksum of all other fields as its last one.

    >>> seal({"rounds": 3})[:35]
    b'{"rounds": 3, "sha256": "7eef2b66ab'
    """
    plain = json.loads(json.dumps(data))
    return json.dumps({**plain, SEAL: _digest(plain)}, indent=indent).encode()


def read_sealed(path: Path) -> object:
    """What `seal` wrote into a file, without the checksum; files from before there was one are taken as they are."""
    return unseal(read_json(path), str(path))


def unseal(data: object, where: str) -> object:
    """An object without its checksum; refuses one that was changed since it was sealed.

    >>> unseal(json.loads(seal({"rounds": 3})) | {"rounds": 4}, "card.json")
    Traceback (most recent call last):
    reticent.errors.DataError: card.json was changed since it was written: its checksum is not that of what is in it...
    """
    if not isinstance(data, dict) or SEAL not in data:
        return data
    plain = {name: value for name, value in data.items() if name != SEAL}
    if data[SEAL] != _digest(plain):
        raise DataError(
            f"{where} was changed since it was written: its checksum is not that of what is in it. Bring it back as "
            "it was"
        )
    return plain


def seal_of(path: Path) -> str | None:
    """The checksum that a file carries; None if it is from before there was one."""
    data = read_json(path)
    found = data.get(SEAL) if isinstance(data, dict) else None
    return found if isinstance(found, str) else None


def _digest(plain: Mapping[str, object]) -> str:
    """SHA-256 of the fields in the order of their names, without spaces."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
