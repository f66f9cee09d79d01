"""Image folders: one sub-folder for each class; needs the optional package Pillow."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

from reticent.data.examples import Examples
from reticent.errors import DataError

_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"}
_MODES = {1: "L", 3: "RGB"}


def image_folder(
    path: str | Path, *, size: tuple[int, int], channels: int = 3, classes: Sequence[str] | None = None
) -> Examples:
    """Images of `path`/class/*.png (or jpg, ...) as (N, channels, height, width) in [0, 1], resized to `size`.

    `classes` gives the sub-folders in the order of their labels; without it they go by name.
    """
    pillow = _pillow()
    if channels not in _MODES:
        raise DataError(f"images have 1 channel (grey) or 3 (colour), not {channels}")
    root = Path(path)
    names = list(classes) if classes is not None else sorted(entry.name for entry in _folders(root))
    files = [(file, label) for label, name in enumerate(names) for file in _files(root / name)]
    if not files:
        raise DataError(f"no images in {root}: expected a folder for each class, with image files in it")
    pixels = np.empty((len(files), channels, *size), np.uint8)
    for row, (file, _) in enumerate(files):
        pixels[row] = _read(pillow, file, size, channels)
    x = torch.from_numpy(pixels).float().div_(255)
    return Examples(x, torch.tensor([label for _, label in files]))


def _pillow() -> ModuleType:
    try:
        return import_module("PIL.Image")
    except ImportError:
        raise DataError("image folders need the package Pillow: pip install 'reticent[images]'") from None


def _folders(root: Path) -> list[Path]:
    if not root.is_dir():
        raise DataError(f"{root} is not a folder")
    return [entry for entry in root.iterdir() if entry.is_dir()]


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder} for the class {folder.name!r}")
    return sorted(file for file in folder.iterdir() if file.suffix.lower() in _SUFFIXES)


def _read(pillow: ModuleType, file: Path, size: tuple[int, int], channels: int) -> np.ndarray:
    height, width = size
    try:
        with pillow.open(file) as image:
            pixels = np.asarray(image.convert(_MODES[channels]).resize((width, height)), np.uint8)
    except OSError as error:
        raise DataError(f"cannot read {file} ({error}): mend or remove it") from error
    return pixels.reshape(height, width, channels).transpose(2, 0, 1)
