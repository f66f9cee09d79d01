"""The defences by name, for the command line and for comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from reticent.about import About
from reticent.defences import advreg, selena
from reticent.defences.defended import Defended, Progress
from reticent.defences.plain import Plain, known_chance, seeds
from reticent.defences.settings import Settings, field_names
from reticent.errors import SettingError, UnknownName

_SETTINGS: dict[str, type] = {"advreg": advreg.AdvReg, "selena": selena.Selena}


def abouts() -> dict[str, About]:
    """What is known about each defence, by name."""
    return {about.name: about for about in (advreg.ABOUT, selena.ABOUT)}


def names() -> list[str]:
    """The names that `defend` knows.

    >>> names()
    ['advreg', 'selena']
    """
    return list(_SETTINGS)


def options(name: str) -> Settings:
    """What can be set of a defence, with its defaults: its own settings, then those of plain training.

    >>> options("selena")["K"], options("advreg")["penalty"]
    (25, 1.0)
    """
    if name not in _SETTINGS:
        raise UnknownName("defence", name, _SETTINGS)
    return field_names(_SETTINGS[name]) | field_names(Plain)


def defend(
    name: str,
    make_model: Callable[[], nn.Module],
    examples: Iterable[object],
    *,
    seed: int | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Defended:
    """Train with a defence by its name; a seed also fixes the initial weights.

    >>> import torch
    >>> pair = torch.randn(50, 3), torch.arange(50) % 2
    >>> defend("advreg", lambda: nn.Linear(3, 2), pair, epochs=1, seed=0).guarantee.status
    'none'
    """
    options(name)  # refuses an unknown name
    if name == "selena":
        return selena.selena(make_model, examples, seed=seed, progress=progress, **settings)
    weights, play = seeds(seed, 2)
    with known_chance(weights):
        model = make_model()
    return advreg.advreg(model, examples, seed=None if seed is None else play, progress=progress, **settings)


def rows_used(name: str, size: int, *, seed: int | None, **settings: object) -> tuple[Tensor, Tensor]:
    """Which of `size` examples `defend` trains on, and which it sets aside; only the first can be found by an attack.

    >>> [len(part) for part in rows_used("advreg", 50, seed=0)], [len(part) for part in rows_used("selena", 50, seed=0)]
    ([35, 15], [50, 0])
    """
    options(name)
    if name != "advreg":
        return torch.arange(size), torch.arange(0)
    if seed is None:
        raise SettingError(
            "this AdvReg model was trained without a seed, so nobody knows which examples it set aside as reference "
            "and did not train on: train it with a seed to attack it"
        )
    return advreg.rows_used(size, seeds(seed, 2)[1], **settings)
