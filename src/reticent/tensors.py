"""Files of tensors (safetensors), written tensor by tensor: what is saved is never in memory a second time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import torch
from safetensors import safe_open
from torch import Tensor

from reticent.errors import ResumeError
from reticent.files import replacing
from reticent.reading import reading

# The names of the format for the types that it knows.
KINDS = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.complex64: "C64",
}
SEAL = "sha256"
CHUNK = 1 << 24
_UNKNOWN = "0" * 64
"""Stands in the head of a file until the checksum is known; as long as one."""


def write_tensors(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, str], *, mode: int = 0o644) -> str:
    """Write tensors and words that belong to them, and answer with the SHA-256 of the file."""
    head = _head(tensors, meta)
    found = hashlib.sha256(head)
    with replacing(path, mode=mode) as file:
        file.write(head)
        for name in _ordered(tensors):
            _put(file, tensors[name], found.update)
    return found.hexdigest()


def write_sealed(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, str], *, mode: int = 0o600) -> None:
    """Write tensors and words with the checksum of both in the head (see `digest_of`)."""
    head = _head(tensors, {**meta, SEAL: _UNKNOWN})
    found = _begun(meta)
    with replacing(path, mode=mode) as file:
        file.write(head)
        for name in _ordered(tensors):
            found.update(_about(name, tensors[name]))
            _put(file, tensors[name], found.update)
        file.seek(head.rindex(_UNKNOWN.encode()))
        file.write(found.hexdigest().encode())


def digest_of(tensors: Mapping[str, Tensor], meta: Mapping[str, str]) -> str:
    """SHA-256 of words, but for the checksum, and tensors: each with its name, kind and shape, in order."""
    found = _begun(meta)
    for name in _ordered(tensors):
        found.update(_about(name, tensors[name]))
        _each(tensors[name], found.update)
    return found.hexdigest()


def read_tensors(path: Path, remedy: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the words of a file; whether they are those that were written, its checksum says."""
    with reading(path, remedy, error=ResumeError), safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118 - no mapping


def _begun(meta: Mapping[str, str]) -> hashlib._Hash:
    return hashlib.sha256(json.dumps(sorted(item for item in meta.items() if item[0] != SEAL)).encode())


def _about(name: str, part: Tensor) -> bytes:
    return json.dumps([name, str(part.dtype), list(part.shape)]).encode()


def _ordered(tensors: Mapping[str, Tensor]) -> list[str]:
    """Wide types first, so that each tensor begins where its type may."""
    return sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))


def _head(tensors: Mapping[str, Tensor], meta: Mapping[str, str]) -> bytes:
    """Where each tensor stands, and the words last."""
    told: dict[str, object] = {}
    end = 0
    for name in _ordered(tensors):
        part = tensors[name]
        if part.dtype not in KINDS:
            raise ResumeError(f"cannot store tensors of the type {part.dtype}: convert {name!r} to another one")
        begin, end = end, end + part.numel() * part.element_size()
        told[name] = {"dtype": KINDS[part.dtype], "shape": list(part.shape), "data_offsets": [begin, end]}
    text = json.dumps({**told, "__metadata__": dict(meta)}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _put(file: BinaryIO, part: Tensor, digest: Callable[[memoryview], None]) -> None:
    def both(piece: memoryview) -> None:
        file.write(piece)
        digest(piece)

    _each(part, both)


def _each(part: Tensor, use: Callable[[memoryview], None]) -> None:
    """Use the bytes of a tensor piece by piece; only what is not on the processor, or not in one piece, is copied."""
    whole = part.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
    for start in range(0, len(whole), CHUNK):
        use(whole[start : start + CHUNK])
