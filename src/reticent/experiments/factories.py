"""Factories: one's own network, named as `package.module:function` wherever a network of ours could be named."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path

from torch import nn

from reticent.errors import SettingError


def is_factory(name: str) -> bool:
    """Whether a network's name is a factory's.

    >>> is_factory("mypackage.networks:make_model"), is_factory("cnn")
    (True, False)
    """
    return ":" in name


def find_factory(name: str) -> Callable[..., object]:
    """The function that such a name stands for; modules are also looked for where the command was given.

    >>> find_factory("torch.nn:Identity").__name__
    'Identity'
    """
    module, _, function = name.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    try:
        found: object = importlib.import_module(module)
        for part in function.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingError(f"cannot load the model {name!r}: {error}. Say it as package.module:function") from error
    if not callable(found):
        raise SettingError(f"the model {name!r} is a {type(found).__name__}: name a function or a class that makes one")
    return found


def made_by(name: str, *, inputs: tuple[int, ...], classes: int) -> nn.Module:
    """The network that a factory makes; it is told the shape of an input and how many classes there are, if it asks.

    >>> made_by("torch.nn:Identity", inputs=(4,), classes=2)
    Identity()
    """
    factory = find_factory(name)
    asked = inspect.signature(factory).parameters
    given = {what: value for what, value in (("inputs", inputs), ("classes", classes)) if what in asked}
    made = factory(**given)
    if not isinstance(made, nn.Module):
        raise SettingError(f"the model {name!r} made a {type(made).__name__}: it must make a torch.nn.Module")
    return made
