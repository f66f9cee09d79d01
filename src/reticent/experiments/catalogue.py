"""Everything that can be trained by name: the methods of the pipeline, and the defences outside it."""

from __future__ import annotations

from typing import Any

from reticent import defences, methods
from reticent.errors import UnknownName

_DEFENCES = {
    "advreg": ("AdvReg", "Nasr et al. 2018, Machine Learning with Membership Privacy using Adversarial Regularization"),
    "selena": ("SELENA", "Tang et al. 2022, Mitigating Membership Inference Attacks by Self-Distillation"),
}


def names() -> list[str]:
    """Every name that `--method` takes.

    >>> names()[0], names()[-1]
    ('dpsgd', 'selena')
    """
    return [*methods.names(), *defences.names()]


def options(name: str) -> dict[str, Any]:
    """The options of a method or a defence, with their defaults."""
    if name not in names():
        raise UnknownName("method", name, names())
    return defences.options(name) if name in defences.names() else methods.options(name)


def listing() -> list[dict[str, Any]]:
    """The table of all of them.

    >>> {"dpsur", "dpis", "selena"} <= {row["name"] for row in listing()}
    True
    """
    return [*methods.listing(), *(_row(name) for name in defences.names())]


def _row(name: str) -> dict[str, Any]:
    title, paper = _DEFENCES[name]
    return {
        "name": name,
        "title": title,
        "paper": paper,
        "changes": "everything: a defence outside the pipeline",
        "guarantee": "none: an empirical defence",
        "equations": {},
        "options": {key: {"default": value, "does": f"docs/methods/{name}.md"} for key, value in options(name).items()},
        "docs": f"docs/methods/{name}.md",
    }
