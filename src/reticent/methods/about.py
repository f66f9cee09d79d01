"""What is known about each method: the stage it changes, its paper, and what may be promised."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class About:
    """One row of the table of methods."""

    title: str
    paper: str
    changes: str
    guarantee: str
    equations: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    docs: str = ""


SHARED = {
    "noise_multiplier": "noise relative to the most one example can add; None: the least the budget allows",
    "max_grad_norm": "clip norm of an example's gradient (C)",
}
VALIDATION = {
    "validation_batch_size": "expected size of the draw that judges an update (B_v)",
    "validation_noise": "noise multiplier of the answer (sigma_v)",
    "loss_limit": "cut of the change of the loss (C_v)",
}


def row(name: str, about: About, defaults: dict[str, Any]) -> dict[str, Any]:
    """The table row of a method as plain data, each option with its default and what it does.

    >>> about = About(title="X", paper="p", changes="noise", guarantee="proved", options={"k": "rate"})
    >>> row("x", about, {"k": 2})["options"]
    {'k': {'default': 2, 'does': 'rate'}}
    """
    described = SHARED | about.options
    options = {option: {"default": default, "does": described[option]} for option, default in defaults.items()}
    return {
        "name": name,
        "title": about.title,
        "paper": about.paper,
        "changes": about.changes,
        "guarantee": about.guarantee,
        "equations": about.equations,
        "options": options,
        "docs": about.docs or f"docs/methods/{name}.md",
    }
