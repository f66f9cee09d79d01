"""Audit a method by its name, if asked with a bug planted first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from reticent import methods
from reticent.audits.verdict import Report, Tell, audit
from reticent.errors import SettingError
from reticent.inside.planted import find
from reticent.methods import Method


def audit_method(
    name: str = "dpsgd",
    *,
    noise_multiplier: float = 1.0,
    max_grad_norm: float | None = None,
    options: Mapping[str, object] | None = None,
    runs: int = 2000,
    alpha: float = 0.05,
    bug: str | None = None,
    seed: int | None = None,
    tell: Tell = lambda _finding: None,
) -> Report:
    """Look for anything that contradicts what the step of a method claims.

    >>> audit_method("dpsgd", runs=20, bug="no-noise", seed=0).verdict
    'contradicted'
    """
    with with_bug(bug, name):
        method = method_for(name, noise_multiplier, max_grad_norm, options or {})
        return audit(method, runs=runs, alpha=alpha, seed=seed, tell=tell)


def method_for(
    name: str, noise_multiplier: float | None, max_grad_norm: float | None, options: Mapping[str, object]
) -> Method:
    """A method with those of the settings that it has."""
    known = methods.options(name)
    given = {"noise_multiplier": noise_multiplier, "max_grad_norm": max_grad_norm, **options}
    return methods.get(name, **{key: value for key, value in given.items() if value is not None and key in known})


@contextmanager
def with_bug(name: str | None, method: str) -> Iterator[None]:
    """The bug of this name is planted inside, if there is one; what it does not touch is no test of an audit."""
    if name is None:
        yield
        return
    with find(name).planted() as found:
        yield
    if not found.asked:
        raise SettingError(f"nothing of {method} does what {name} breaks: plant another bug, or in another method")
