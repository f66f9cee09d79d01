"""The datasets that are known by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reticent.data.examples import Dataset
from reticent.data.loading.opening import Declaration, is_path, open_path
from reticent.data.loading.own import describe
from reticent.data.loading.places import data_folder
from reticent.data.sets import adult, checkins, cifar, digits, imdb, mnist
from reticent.errors import DataError, UnknownName

LOADERS: dict[str, Callable[[Path], Dataset]] = {
    "digits": digits.load,
    "mnist": mnist.load_mnist,
    "fashion-mnist": mnist.load_fashion,
    "cifar10": cifar.load_cifar10,
    "cifar100": cifar.load_cifar100,
    "imdb": imdb.load_imdb,
    "purchase100": checkins.load_purchase,
    "location30": checkins.load_location,
    "adult": adult.load_adult,
    "adult-clean": adult.load_clean,
}
ALIASES = {"fmnist": "fashion-mnist"}
_DESCRIPTION = ".toml"


def names() -> tuple[str, ...]:
    """The names `load` knows.

    >>> "mnist" in names()
    True
    """
    return tuple(LOADERS)


def resolve(name: str) -> str:
    """The full name behind an alias; a path to the user's own data is its own name, anything else is refused.

    >>> resolve("fmnist")
    'fashion-mnist'
    """
    full = ALIASES.get(name, name)
    if full not in LOADERS and not name.endswith(_DESCRIPTION) and not is_path(name):
        raise UnknownName("dataset", name, [*LOADERS, *ALIASES])
    return full


def is_own(name: str) -> bool:
    """Whether a dataset is the user's, by its path or description file.

    >>> is_own("people.csv"), is_own("digits")
    (True, False)
    """
    full = resolve(name)
    return full not in LOADERS


def load(name: str, *, folder: str | Path | None = None, declared: Declaration | None = None) -> Dataset:
    """Load a dataset by name from the data folder, or the user's own by its path or description file (`own.toml`).

    The first reading decodes and verifies what is known by name.

    >>> load("digits").classes
    10
    """
    full = resolve(name)
    said = Declaration() if declared is None else declared
    if full not in LOADERS and is_path(full):
        return open_path(full, said)
    if full.endswith(_DESCRIPTION):
        return describe(full, groups=said.groups)
    if said.groups is not None:
        raise DataError(f"{full} does not say whose its rows are: groups is for your own tables and arrays")
    return LOADERS[full](data_folder(folder))
