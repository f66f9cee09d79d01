"""Every method by its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from reticent.errors import SettingError, UnknownName
from reticent.methods import auto_s, dpagd, dpis, dpsgd, dpsign, dpsur, noise_decay, pd_sgd, sa_dpsgd
from reticent.methods.about import About, row
from reticent.methods.method import Method

_METHODS: dict[str, tuple[Callable[..., Method], About]] = {
    "dpsgd": (dpsgd.dpsgd, dpsgd.ABOUT_DPSGD),
    "dpadam": (dpsgd.dpadam, dpsgd.ABOUT_DPADAM),
    "dpsur": (dpsur.dpsur, dpsur.ABOUT),
    "sa_dpsgd": (sa_dpsgd.sa_dpsgd, sa_dpsgd.ABOUT),
    "dpis": (dpis.dpis, dpis.ABOUT),
    "dpsign_sgd": (dpsign.dpsign_sgd, dpsign.ABOUT_SGD),
    "dpsign_adam": (dpsign.dpsign_adam, dpsign.ABOUT_ADAM),
    "pd_sgd": (pd_sgd.pd_sgd, pd_sgd.ABOUT),
    "auto_s": (auto_s.auto_s, auto_s.ABOUT),
    "noise_decay": (noise_decay.noise_decay, noise_decay.ABOUT),
    "dpagd": (dpagd.dpagd, dpagd.ABOUT),
}


def names() -> list[str]:
    """The names that `get` knows.

    >>> names()[0]
    'dpsgd'
    """
    return list(_METHODS)


def get(name: str, **chosen: Any) -> Method:
    """A method by name, with options where they differ from its defaults.

    >>> get("dpsgd", max_grad_norm=0.1).max_grad_norm
    0.1
    """
    known = options(name)
    for option in chosen:
        if option not in known:
            raise UnknownName(f"option of {name}", option, known)
    try:
        return _METHODS[name][0](**chosen)
    except TypeError as error:
        raise SettingError(f"{name}: {error}") from error


def options(name: str) -> dict[str, Any]:
    """The options of a method with their defaults.

    >>> options("dpsgd")
    {'noise_multiplier': None, 'max_grad_norm': 1.0}
    """
    if name not in _METHODS:
        raise UnknownName("method", name, _METHODS)
    return {option: how.default for option, how in inspect.signature(_METHODS[name][0]).parameters.items()}


def listing() -> list[dict[str, Any]]:
    """The table of every method: the stage it changes, its guarantee, paper, equations, and options.

    >>> [row["changes"] for row in listing() if row["name"] == "auto_s"]
    ['bound: normalise instead of clip']
    """
    return [row(name, about, options(name)) for name, (_, about) in _METHODS.items()]
