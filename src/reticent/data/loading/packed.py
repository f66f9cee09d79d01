"""Colour images packed without loss: green, red less green, blue less green, each as differences from a prediction."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int16]

_CHUNK = 5_000


def unpack_images(residual: Bytes) -> Bytes:
    """Undo the packing of `residual` (3, height, width, N): images (N, 3, height, width) in red, green, blue.

    >>> unpack_images(np.full((3, 1, 1, 1), 5, np.uint8)).ravel().tolist()
    [10, 5, 10]
    """
    count = residual.shape[3]
    images = np.empty((count, *residual.shape[:3]), np.uint8)
    for start in range(0, count, _CHUNK):
        chunk = np.ascontiguousarray(residual[..., start : start + _CHUNK])
        green, red, blue = _integrate(chunk)
        images[start : start + _CHUNK] = np.stack([red + green, green, blue + green]).transpose(3, 0, 1, 2)
    return images


def _integrate(residual: Bytes) -> Ints:
    """Planes of green and of the two differences from it, pixel by pixel over all images at once."""
    planes = np.empty(residual.shape, np.int16)
    for row in range(residual.shape[1]):
        for column in range(residual.shape[2]):
            value = residual[:, row, column] + _predict(planes, row, column)
            value[0] &= 255
            # A difference is stored modulo 256: choose the one whose colour is a byte.
            value[1:] = ((value[1:] + value[0]) & 255) - value[0]
            planes[:, row, column] = value
    return planes


def _predict(planes: Ints, row: int, column: int) -> Ints:
    """West + north - north-west, held between west and north; at an edge the one neighbour there is."""
    if row and column:
        west, north = planes[:, row, column - 1], planes[:, row - 1, column]
        plane = west + north - planes[:, row - 1, column - 1]
        held: Ints = np.clip(plane, np.minimum(west, north), np.maximum(west, north))
        return held
    if row:
        return planes[:, row - 1, column]
    return planes[:, row, column - 1] if column else np.zeros_like(planes[:, 0, 0])
