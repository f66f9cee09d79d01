"""Where datasets and what is computed from them live on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path, user_data_path

APP = "reticent"


def data_folder(option: str | Path | None = None) -> Path:
    """The folder that holds datasets: the option, else `$RETICENT_DATA`, else the platform's own.

    >>> data_folder("here").name
    'here'
    """
    return _choose(option, "RETICENT_DATA", user_data_path(APP, appauthor=False))


def cache_folder(option: str | Path | None = None) -> Path:
    """The folder for decoded arrays and features: the option, else `$RETICENT_CACHE`, else the platform's own.

    >>> cache_folder("there").name
    'there'
    """
    return _choose(option, "RETICENT_CACHE", user_cache_path(APP, appauthor=False))


def _choose(option: str | Path | None, variable: str, fallback: Path) -> Path:
    chosen = option or os.environ.get(variable)
    return Path(chosen).expanduser() if chosen else fallback
