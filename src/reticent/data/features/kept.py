"""Kept features: arrays on disk, for their owner only, under names that tell nobody which examples were here."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from reticent.data.loading.arrays import Array, fresh_folder, open_array, read_arrays, seal_arrays
from reticent.data.loading.maps import map_array
from reticent.data.loading.places import cache_folder
from reticent.files import private_folder, write_private
from reticent.reading import reading

# Part of every cache key: raise it when the same extractor starts to answer differently.
FEATURE_VERSION = 1


def kept(identity: str, shape: tuple[int, ...], fill: Callable[[Array], None], known: Callable[[], None]) -> Tensor:
    """The array of this identity: from disk, after `known` was told, or made by `fill` and kept there."""
    place = private_folder(cache_folder())
    name = f"{FEATURE_VERSION}\n{identity}".encode()
    folder = place / "features" / hashlib.blake2b(name, key=_key(place), digest_size=16).hexdigest()
    if (found := read_arrays(folder)) is not None and found["x"].shape == shape:
        known()
    else:
        with fresh_folder(folder, "features", private=True) as fresh:
            file = open_array(fresh / "x.npy", shape)
            fill(file)
            file.flush()
            seal_arrays(fresh)
    return map_array(folder / "x.npy", writable=True)


def _key(place: Path) -> bytes:
    """What the names of caches are made with: without it they tell nobody which examples were here."""
    path = place / "key"
    with reading(path, "choose another folder for caches with $RETICENT_CACHE"):
        if not path.exists():
            write_private(path, secrets.token_bytes(32))
        return path.read_bytes()[:64]
