"""From files in the data folder to checked arrays: the first layout that is present, decoded once, then cached."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
import torch

from reticent.data.examples import Dataset, Examples
from reticent.data.loading.arrays import Arrays, file_digest, fingerprint, read_arrays, write_arrays
from reticent.data.loading.places import cache_folder
from reticent.errors import DataError
from reticent.reading import reading

# Part of every cache key: raise it when a reader starts to answer differently.
DECODER_VERSION = 3


@dataclass(frozen=True)
class FileLayout:
    """One form in which a dataset's files are found, and the function that reads them."""

    files: tuple[str, ...]
    read: Callable[[Path], Arrays]
    published: str = ""  # its table in fingerprints.toml, where this form decodes to other arrays than the rest
    md5: tuple[str, ...] = ()  # of the files, where their authors publish that: looked at before they are read

    def in_brief(self) -> str:
        """Its first file, and how many more there are.

        >>> FileLayout(("a.gz", "b.gz"), lambda folder: {}).in_brief()
        'a.gz and 1 more'
        """
        return self.files[0] + (f" and {len(self.files) - 1} more" if len(self.files) > 1 else "")

    def present(self, folder: Path) -> bool:
        """Whether every file of this form is in the folder."""
        return all((folder / file).exists() for file in self.files)


@dataclass(frozen=True)
class Stored:
    """A dataset kept as files: its forms in order of preference; decoded, each must give the published arrays."""

    name: str
    layouts: tuple[FileLayout, ...]
    prepare: Callable[[Arrays], Arrays] = dict  # from verified arrays to what is cached and served

    def arrays(self, root: Path) -> Arrays:
        """The prepared arrays: decoded and verified on the first reading, mapped from the cache ever after."""
        folder, layout = self._find(root)
        cache = cache_folder() / "decoded" / f"{self.name}-{_content_key(folder, layout)}"
        if (known := read_arrays(cache)) is not None:
            return known
        _check_files(layout, folder, self.name)
        arrays = _read(layout, folder, self.name)
        self.verify(arrays, f"the files in {folder}", layout.published)
        write_arrays(cache, ready := self.prepare(arrays), f"decoded {self.name}")
        return read_arrays(cache) or ready

    def present(self, root: Path) -> bool:
        """Whether the data folder holds it in any form."""
        return any(layout.present(root / self.name) for layout in self.layouts)

    def verify(self, arrays: Arrays, origin: str, published: str = "") -> None:
        """Refuse arrays that are not the published dataset."""
        for part, expected in published_fingerprints().get(published or self.name, {}).items():
            found = fingerprint(arrays[part]) if part in arrays else "absent"
            if found != expected:
                raise DataError(
                    f"{self.name}: {part} decoded from {origin} is not the published data "
                    f"(sha256 {found[:12]}, expected {expected[:12]}); "
                    f"remove it and run `reticent data get {self.name}`"
                )

    def _find(self, root: Path) -> tuple[Path, FileLayout]:
        folder = root / self.name
        for layout in self.layouts:
            if layout.present(folder):
                return folder, layout
        looked = "; ".join(layout.in_brief() for layout in self.layouts)
        raise DataError(
            f"{self.name} is not in {folder}: run `reticent data get {self.name}`, or set $RETICENT_DATA to the folder "
            f"that holds {self.name}/ (looked for: {looked})"
        )


@cache
def published_fingerprints() -> Mapping[str, Mapping[str, str]]:
    """sha256 of the decoded arrays of each published dataset.

    >>> len(published_fingerprints()["mnist"]["train_x"])
    64
    """
    return tomllib.loads(resources.files("reticent.data.loading").joinpath("fingerprints.toml").read_text("utf-8"))


def _content_key(folder: Path, layout: FileLayout) -> str:
    files = [folder / name for name in layout.files]
    parts = [f"{DECODER_VERSION}", *(f"{path.name}:{file_digest(path)}" for path in files if path.is_file())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _check_files(layout: FileLayout, folder: Path, name: str) -> None:
    for file, expected in zip(layout.files, layout.md5, strict=False):
        if file_digest(folder / file, "md5") != expected:
            raise DataError(
                f"{name}: {folder / file} is not the published file (its md5 should be {expected}); "
                f"remove it and run `reticent data get {name}`"
            )


def _read(layout: FileLayout, folder: Path, name: str) -> Arrays:
    with reading(f"{', '.join(layout.files)} in {folder}", f"remove them and run `reticent data get {name}`"):
        return layout.read(folder)


def unit_images(arrays: Arrays) -> Arrays:
    """Images of bytes as floats in [0, 1], with a channel axis if they have none, and labels as int64.

    >>> ready = unit_images({"train_x": np.full((1, 2, 2), 255, np.uint8), "train_y": np.zeros(1, np.uint8)})
    >>> ready["train_x"].tolist(), ready["train_y"].dtype
    ([[[[1.0, 1.0], [1.0, 1.0]]]], dtype('int64'))
    """
    ready: Arrays = {}
    for name, values in arrays.items():
        if name.endswith("_x"):
            pixels = values if values.ndim == 4 else values[:, None]
            ready[name] = np.divide(pixels, np.float32(255), dtype=np.float32)
        else:
            ready[name] = values.astype(np.int64)
    return ready


def split_dataset(stored: Stored, root: Path, classes: int, note: str, names: tuple[str, ...] | None = None) -> Dataset:
    """A dataset whose arrays come as train_x, train_y, test_x, test_y."""
    arrays = stored.arrays(root)
    train, test = (
        Examples(torch.from_numpy(arrays[f"{part}_x"]), torch.from_numpy(arrays[f"{part}_y"]))
        for part in ("train", "test")
    )
    return Dataset(stored.name, train, test, classes, note, names)
