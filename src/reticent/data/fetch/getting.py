"""`get`: try the sources in turn, verify what they gave, and put it in place whole."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from reticent.data.catalogue import resolve
from reticent.data.fetch.sources import Local, Source
from reticent.data.fetch.table import SOURCES
from reticent.data.fetch.transfer import Report
from reticent.data.loading.arrays import fresh_folder
from reticent.data.loading.places import data_folder
from reticent.data.loading.stored import Stored
from reticent.data.sets import adult, checkins, cifar, imdb, mnist
from reticent.data.sets.vectors import GLOVE
from reticent.errors import DataError

STORED: dict[str, Stored] = {
    stored.name: stored
    for stored in (
        mnist.MNIST,
        mnist.FASHION,
        cifar.CIFAR10,
        cifar.CIFAR100,
        imdb.IMDB,
        checkins.PURCHASE,
        checkins.LOCATION,
        adult.ADULT,
        adult.CLEAN,
    )
} | {"glove": GLOVE[100], "glove-50": GLOVE[50]}


@dataclass(frozen=True)
class Got:
    """What came of asking for a dataset: its folder, and the source it came from (None if it was there already)."""

    name: str
    folder: Path
    source: str | None


def gettable() -> tuple[str, ...]:
    """The names `get` knows: the datasets that are kept as files, and the word vectors.

    >>> "glove" in gettable()
    True
    """
    return tuple(STORED)


def get(
    name: str,
    *,
    folder: str | Path | None = None,
    offline: bool = False,
    local: str | Path | None = None,
    report: Report | None = None,
) -> Got:
    """Make a dataset available in the data folder, verified; nothing is fetched if it is there already."""
    full = name if name in STORED else resolve(name)
    if full not in STORED:
        return Got(full, data_folder(folder), "embedded in scikit-learn")
    root, stored = data_folder(folder), STORED[full]
    if stored.present(root):
        stored.arrays(root)
        return Got(full, root / stored.name, None)
    if offline and local is None:
        raise DataError(f"{full} is not in {root / stored.name} and --offline forbids to fetch it")
    sources: tuple[Source, ...] = (Local(Path(local)),) if local is not None else SOURCES[full]
    return _from_first(sources, full, root, report or _silent)


def _from_first(sources: tuple[Source, ...], name: str, root: Path, report: Report) -> Got:
    tried = []
    for source in sources:
        report(str(source), 0, None)
        try:
            _install(source, name, root, report)
        except (DataError, OSError) as error:
            tried.append(f"{source}: {error}")
        else:
            return Got(name, root / STORED[name].name, str(source))
    remedy = "if you have the official file, give it with --from"
    raise DataError(f"could not get {name}; tried:\n  " + "\n  ".join(tried) + f"\n{remedy}")


def _install(source: Source, name: str, root: Path, report: Report) -> None:
    """Fetch into a hidden folder, verify by decoding, then move each file to its place."""
    stored, downloads = STORED[name], root / ".downloads" / name
    with fresh_folder(root / f".get-{name}", name, publish=False) as fresh:
        arrived = fresh / stored.name
        arrived.mkdir()
        source.fetch(arrived, downloads, report)
        report(f"verifying {name}", 0, None)
        stored.arrays(fresh)
        target = root / stored.name
        for path in sorted(arrived.rglob("*")):
            if path.is_file():
                place = target / path.relative_to(arrived)
                place.parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, place)
    shutil.rmtree(downloads, ignore_errors=True)


def _silent(_what: str, _done: int, _total: int | None) -> None:
    return None
