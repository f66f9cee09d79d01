"""Every method by its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from reticent.errors import SettingError, UnknownName
from reticent.methods.auto_s import auto_s
from reticent.methods.dpagd import dpagd
from reticent.methods.dpis import dpis
from reticent.methods.dpsgd import dpadam, dpsgd
from reticent.methods.dpsign import dpsign_adam, dpsign_sgd
from reticent.methods.dpsur import dpsur
from reticent.methods.method import Method
from reticent.methods.noise_decay import noise_decay
from reticent.methods.pd_sgd import pd_sgd
from reticent.methods.sa_dpsgd import sa_dpsgd

_METHODS: dict[str, Callable[..., Method]] = {
    make.__name__: make
    for make in (dpsgd, dpadam, dpsur, sa_dpsgd, dpis, dpsign_sgd, dpsign_adam, pd_sgd, auto_s, noise_decay, dpagd)
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
        return _METHODS[name](**chosen)
    except TypeError as error:
        raise SettingError(f"{name}: {error}") from error


def options(name: str) -> dict[str, Any]:
    """The options of a method with their defaults.

    >>> options("dpsgd")
    {'noise_multiplier': None, 'max_grad_norm': 1.0}
    """
    if name not in _METHODS:
        raise UnknownName("method", name, _METHODS)
    return {option: how.default for option, how in inspect.signature(_METHODS[name]).parameters.items()}
