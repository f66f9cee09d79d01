"""What is known about a method: the stage it changes, its paper, what may be promised; tables and help read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypedDict

Kind = Literal["base", "paper", "baseline", "defence"]
KINDS: tuple[Kind, ...] = ("base", "paper", "baseline", "defence")
"""In the order of the tables."""


@dataclass(frozen=True, kw_only=True)
class About:
    """One row of the table of methods; `make` is what `methods.get` calls, its arguments are the options."""

    name: str
    make: Callable[..., object]
    title: str
    paper: str
    changes: str
    guarantee: str
    kind: Kind = "paper"
    equations: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    """What each option does."""
    preset: Mapping[str, float | str] = field(default_factory=dict)
    """Settings of a run that suit the method better than those of its dataset do."""
    gradient_cost: str = ""
    """The option that says how many times as many gradients as DP-SGD it computes, if it does."""
    docs: str = ""

    @property
    def page(self) -> str:
        """Where more is said."""
        return self.docs or f"docs/methods/{self.name}.md"


class Option(TypedDict):
    """An option in a table: its default, and what it does."""

    default: object
    does: str


class MethodRow(TypedDict):
    """A method's row as plain data."""

    name: str
    title: str
    kind: Kind
    paper: str
    changes: str
    guarantee: str
    equations: dict[str, str]
    options: dict[str, Option]
    docs: str


SHARED = {
    "noise_multiplier": "noise relative to the most one example can add; None: the least the budget allows",
    "max_grad_norm": "clip norm of an example's gradient (C)",
}
VALIDATION = {
    "validation_batch_size": "expected size of the draw that judges an update (B_v)",
    "validation_noise": "noise multiplier of the answer (sigma_v)",
    "loss_limit": "cut of the change of the loss (C_v)",
}


def row(about: About, defaults: Mapping[str, object]) -> MethodRow:
    """The table row of a method as plain data, each option with its default and what it does.

    >>> from dataclasses import replace
    >>> about = About(name="x", make=dict, title="X", paper="p", changes="noise", guarantee="none")
    >>> row(replace(about, options={"k": "rate"}), {"k": 2})["options"]
    {'k': {'default': 2, 'does': 'rate'}}
    """
    described = SHARED | dict(about.options)
    return {
        "name": about.name,
        "title": about.title,
        "kind": about.kind,
        "paper": about.paper,
        "changes": about.changes,
        "guarantee": about.guarantee,
        "equations": dict(about.equations),
        "options": {
            name: {"default": default, "does": described.get(name, about.page)} for name, default in defaults.items()
        },
        "docs": about.page,
    }
