"""Every method by its name: the files of papers/, and what other packages bring by the entry point reticent.methods."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points

from reticent.about import KINDS, About, MethodRow, row
from reticent.errors import SettingError, UnknownName
from reticent.methods import papers
from reticent.methods.method import Method

GROUP = "reticent.methods"


@cache
def abouts() -> dict[str, About]:
    """What each method's own file says about it, by name: the base first, then the papers, then the baselines.

    >>> list(abouts())[:2]
    ['dpsgd', 'dpadam']
    """
    found: dict[str, About] = {}
    for about in _ours():
        found[about.name] = about
    for about in _from_other_packages():
        if about.name in found:
            raise SettingError(f"two packages bring a method called {about.name}: remove one of them")
        found[about.name] = about
    return dict(sorted(found.items(), key=lambda item: KINDS.index(item[1].kind)))


def _ours() -> Iterator[About]:
    """`ABOUT` of every file in papers/, one or several."""
    names = sorted(module.name for module in pkgutil.iter_modules(papers.__path__))
    for name in names:
        yield from _told(importlib.import_module(f"{papers.__name__}.{name}").ABOUT)


def _from_other_packages() -> Iterator[About]:
    """An entry point names a module with `ABOUT`, or an `About` itself."""
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            loaded = point.load()
            yield from _told(getattr(loaded, "ABOUT", loaded))
        except Exception as error:
            raise SettingError(
                f"the method {point.name} ({point.value}) of an installed package cannot be loaded: {error}"
            ) from error


def _told(about: object) -> tuple[About, ...]:
    found = about if isinstance(about, tuple) else (about,)
    for part in found:
        if not isinstance(part, About):
            raise SettingError(f"ABOUT must be an About, or a tuple of them, not {part!r}")
    return found


def names() -> list[str]:
    """The names that `get` knows.

    >>> names()[0]
    'dpsgd'
    """
    return list(abouts())


def get(name: str, **chosen: object) -> Method:
    """A method by name, with options where they differ from its defaults.

    >>> get("dpsgd", max_grad_norm=0.1).max_grad_norm
    0.1
    """
    known = options(name)
    for option in chosen:
        if option not in known:
            raise UnknownName(f"option of {name}", option, known)
    try:
        made = abouts()[name].make(**chosen)
    except TypeError as error:
        raise SettingError(f"{name}: {error}") from error
    if not isinstance(made, Method):
        raise SettingError(f"{name} makes a {type(made).__name__}, not a Method: see docs/add-a-method.md")
    return made


def options(name: str) -> dict[str, object]:
    """The options of a method with their defaults.

    >>> options("dpsgd")
    {'noise_multiplier': None, 'max_grad_norm': 1.0}
    """
    if name not in abouts():
        raise UnknownName("method", name, abouts())
    return {option: how.default for option, how in inspect.signature(abouts()[name].make).parameters.items()}


def listing() -> list[MethodRow]:
    """The table of every method: the stage it changes, its guarantee, paper, equations, and options.

    >>> [row["changes"] for row in listing() if row["name"] == "auto_s"]
    ['bound: normalise instead of clip']
    """
    return [row(about, options(name)) for name, about in abouts().items()]
