"""The datasets that are known by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reticent.data import digits, mnist
from reticent.data.examples import Dataset
from reticent.data.places import data_folder
from reticent.errors import UnknownName

LOADERS: dict[str, Callable[[Path], Dataset]] = {
    "digits": digits.load,
    "mnist": mnist.load_mnist,
    "fashion-mnist": mnist.load_fashion,
}
ALIASES = {"fmnist": "fashion-mnist"}


def names() -> tuple[str, ...]:
    """The names `load` knows.

    >>> "mnist" in names()
    True
    """
    return tuple(LOADERS)


def resolve(name: str) -> str:
    """The full name behind an alias.

    >>> resolve("fmnist")
    'fashion-mnist'
    """
    full = ALIASES.get(name, name)
    if full not in LOADERS:
        raise UnknownName("dataset", name, [*LOADERS, *ALIASES])
    return full


def load(name: str, *, folder: str | Path | None = None) -> Dataset:
    """Load a dataset by name from the data folder; the first reading decodes and verifies it.

    >>> load("digits").classes
    10
    """
    return LOADERS[resolve(name)](data_folder(folder))
