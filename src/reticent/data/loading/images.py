"""Image folders: one sub-folder for each class; needs the optional package Pillow."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reticent.data.examples import Examples
from reticent.errors import DataError
from reticent.reading import reading

_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"}
_MEND = "mend or remove it"
_MODES = {1: "L", 3: "RGB"}
DECLARED = "the size of the images and the class names are public knowledge (schema.json, declared)"
ACCEPTED = (
    "the size of the images and the class names are public knowledge (schema.json, accepted as the folders' names and "
    "the first image give them)"
)


@dataclass(frozen=True)
class ImageSchema:
    """What is declared of images: the size they are brought to, their channels, and the names of the classes."""

    size: tuple[int, int]
    channels: int
    classes: tuple[str, ...]
    accepted: bool = False

    @staticmethod
    def from_json(content: Mapping[str, object]) -> ImageSchema:
        """What a file says."""
        size, channels, classes = content.get("size"), content.get("channels", 3), content.get("classes")
        if not (isinstance(size, list) and len(size) == 2 and channels in _MODES and isinstance(classes, list)):
            raise DataError("images need size = [height, width], channels = 1 or 3, and the list of classes")
        names = tuple(str(name) for name in classes)
        return ImageSchema((int(size[0]), int(size[1])), int(str(channels)), names, content.get("accepted") is True)

    def to_json(self) -> dict[str, object]:
        """Everything as plain JSON data."""
        declared = {"size": list(self.size), "channels": self.channels, "classes": list(self.classes)}
        return {"kind": "images", **declared, "accepted": self.accepted}

    @property
    def assumes(self) -> tuple[str, ...]:
        """What a guarantee rests on where examples were read by this."""
        return (ACCEPTED if self.accepted else DECLARED,)

    def accepts(self, source: object) -> bool:
        """Whether this is a folder or a file."""
        return isinstance(source, str | Path)

    def apply(self, source: Any) -> Tensor:
        """The images of a folder, by name, or one image."""
        path = Path(source)
        found = _pixels([path] if path.is_file() else image_files(path), self.size, self.channels)
        if not len(found):
            raise DataError(f"no images in {path}")
        return found

    def examples(self, root: Path) -> Examples:
        """The images of a folder for each class."""
        found = image_folder(root, size=self.size, channels=self.channels, classes=self.classes)
        return Examples(found.x, found.y, self)


def propose_images(root: Path) -> ImageSchema:
    """The folders' names as classes, and the size and channels of the first image."""
    names = tuple(sorted(entry.name for entry in _folders(root)))
    first = next((file for name in names for file in image_files(root / name)), None)
    if first is None:
        raise DataError(f"no images in {root}: expected a folder for each class, with image files in it")
    with reading(first, _MEND, quote=False), _pillow().open(first) as image:
        (width, height), mode = image.size, image.mode
    return ImageSchema((height, width), 1 if mode in ("1", "L") else 3, names, accepted=True)


def image_folder(
    path: str | Path, *, size: tuple[int, int], channels: int = 3, classes: Sequence[str] | None = None
) -> Examples:
    """Images of `path`/class/*.png (or jpg, ...) as (N, channels, height, width) in [0, 1], resized to `size`.

    `classes` gives the sub-folders in the order of their labels; without it they go by name.
    """
    if channels not in _MODES:
        raise DataError(f"images have 1 channel (grey) or 3 (colour), not {channels}")
    _pillow()
    root = Path(path)
    names = list(classes) if classes is not None else sorted(entry.name for entry in _folders(root))
    files = [(file, label) for label, name in enumerate(names) for file in image_files(root / name)]
    if not files:
        raise DataError(f"no images in {root}: expected a folder for each class, with image files in it")
    x = _pixels([file for file, _ in files], size, channels)
    return Examples(x, torch.tensor([label for _, label in files]))


def _pixels(files: Sequence[Path], size: tuple[int, int], channels: int) -> Tensor:
    pillow = _pillow()
    pixels = np.empty((len(files), channels, *size), np.uint8)
    for row, file in enumerate(files):
        pixels[row] = _read(pillow, file, size, channels)
    return torch.from_numpy(pixels).float().div_(255)


def _pillow() -> ModuleType:
    try:
        return import_module("PIL.Image")
    except ImportError:
        raise DataError("image folders need the package Pillow: pip install 'reticent[images]'") from None


def _folders(root: Path) -> list[Path]:
    if not root.is_dir():
        raise DataError(f"{root} is not a folder")
    return [entry for entry in root.iterdir() if entry.is_dir()]


def image_files(folder: Path) -> list[Path]:
    """The images of a folder, by name."""
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder} for the class {folder.name!r}")
    return sorted(file for file in folder.iterdir() if file.suffix.lower() in _SUFFIXES)


def _read(pillow: ModuleType, file: Path, size: tuple[int, int], channels: int) -> np.ndarray:
    height, width = size
    with reading(file, _MEND, quote=False), warnings.catch_warnings():
        warnings.simplefilter("error", pillow.DecompressionBombWarning)
        with pillow.open(file) as image:
            pixels = np.asarray(image.convert(_MODES[channels]).resize((width, height)), np.uint8)
    return pixels.reshape(height, width, channels).transpose(2, 0, 1)
