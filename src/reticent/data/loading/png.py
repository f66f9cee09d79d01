"""A reader for plain PNG files (8 bits a channel, not interlaced), so that one dataset needs no image library."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from reticent.errors import DataError

_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # by colour type: grey, RGB, and each with transparency

Bytes = npt.NDArray[np.uint8]


def decode_png(raw: bytes) -> Bytes:
    """Decode to an array (height, width, channels)."""
    chunks = _chunks(raw)
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", chunks["IHDR"])
    if depth != 8 or colour not in _CHANNELS or interlaced:
        raise DataError("only plain 8-bit PNG files are read here")
    size = height * (width * _CHANNELS[colour] + 1)
    lines = np.frombuffer(zlib.decompressobj().decompress(chunks["IDAT"], size), np.uint8).reshape(height, -1)
    return _unfilter(lines[:, 1:].reshape(height, width, _CHANNELS[colour]), lines[:, 0])


def _chunks(raw: bytes) -> dict[str, bytes]:
    if raw[:8] != b"\x89PNG\r\n\x1a\n":
        raise DataError("not a PNG file")
    parts: dict[str, list[bytes]] = {}
    start = 8
    while start < len(raw):
        (size,) = struct.unpack_from(">I", raw, start)
        kind = raw[start + 4 : start + 8].decode("ascii")
        parts.setdefault(kind, []).append(raw[start + 8 : start + 8 + size])
        start += size + 12
    return {kind: b"".join(pieces) for kind, pieces in parts.items()}


def _unfilter(filtered: Bytes, filters: Bytes) -> Bytes:
    """Undo the filter of each row; uint8 arithmetic wraps as the format wants."""
    above = np.zeros_like(filtered[0])
    image = np.empty_like(filtered)
    for row, (line, kind) in enumerate(zip(filtered, filters.tolist(), strict=True)):
        if kind == 0:
            image[row] = line
        elif kind == 1:
            np.cumsum(line, axis=0, dtype=np.uint8, out=image[row])
        elif kind == 2:
            image[row] = line + above
        else:
            image[row] = _by_pixel(line, above, _mean if kind == 3 else _nearest)
        above = image[row]
    return image


def _by_pixel(line: Bytes, above: Bytes, predict: Callable[[int, int, int], int]) -> Bytes:
    """Filters that need the decoded pixel to the left before the next: one by one."""
    channels = line.shape[1]
    ups, decoded = [0] * channels + above.ravel().tolist(), [0] * channels
    for place, value in enumerate(line.ravel().tolist()):
        decoded.append((value + predict(decoded[place], ups[place + channels], ups[place])) & 255)
    return np.array(decoded[channels:], np.uint8).reshape(line.shape)


def _mean(left: int, up: int, _corner: int) -> int:
    return (left + up) // 2


def _nearest(left: int, up: int, corner: int) -> int:
    """Whichever neighbour is nearest to left + up - corner (Paeth); ties in this order."""
    target = left + up - corner
    return min((left, up, corner), key=lambda neighbour: abs(target - neighbour))
