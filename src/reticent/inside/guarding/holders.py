"""Places: whatever holds other things, what it holds now, and how to give it back what it held."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reticent.inside.guarding.sameness import same

MISSING = object()
"""What a name holds that is not there."""

Held = list[object]


@dataclass(frozen=True, eq=False)
class Where:
    """The way to a thing: a step from another, down to a module or the loss, which are named in full."""

    step: str
    parent: Where | None = None

    def root(self) -> str:
        """The module, or the loss, that it belongs to."""
        return self.step if self.parent is None else self.parent.root()

    def path(self) -> str:
        """The way from there, with dots.

        >>> Where("last", Where("state", Where("module 'encoder' (Encoder)"))).path()
        'state.last'
        """
        if self.parent is None:
            return ""
        return ".".join(part for part in (self.parent.path(), self.step) if part)


@dataclass(frozen=True, eq=False)
class Holder:
    """Something that holds other things; its views are live: its contents, or its names and what they stand for."""

    where: Where
    views: tuple[Collection[object], ...]
    put_back: Callable[[Held], None]

    def held(self) -> Held:
        """What it holds now; of names, first all of them, then what they stand for."""
        return [value for view in self.views for value in view]

    def same(self, before: Held, now: Held) -> bool:
        """Whether it holds what it held, or the same made anew; a set has no order."""
        if isinstance(self.views[0], set):
            before, now = sorted(before, key=id), sorted(now, key=id)
        return same(before, now)

    def differing(self, before: Held) -> Where:
        """Where it differs from before: an attribute has a name, what a container holds has none that may be told."""
        if self.where.step or len(self.views) == 1:
            return self.where
        then, now = dict(_halves(before)), dict(_halves(self.held()))
        changed = [name for name in {**then, **now} if then.get(name, MISSING) is not now.get(name, MISSING)]
        return Where(str(changed[0]), self.where) if changed else self.where


class Names:
    """Chosen names of something: the slots of an object, the cell of a closure, the globals that a function uses."""

    def __init__(self, owner: object, names: tuple[str, ...]):
        self._owner, self._names = owner, names

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, value: object) -> bool:
        return any(value is held for held in self)

    def __iter__(self) -> Iterator[object]:
        return map(self._get, self._names)

    def _get(self, name: str) -> object:
        if isinstance(self._owner, dict):
            return self._owner.get(name, MISSING)
        try:
            return getattr(self._owner, name)
        except (AttributeError, ValueError):  # a slot, or a cell, that is empty
            return MISSING

    def fill(self, held: Held) -> None:
        """Give the names what they held."""
        for name, value in zip(self._names, held[-len(self._names) :], strict=True):
            if self._get(name) is value:
                continue
            if isinstance(self._owner, dict):
                _set_item(self._owner, name, value)
            elif value is MISSING:
                delattr(self._owner, name)
            else:
                setattr(self._owner, name, value)


def holder_of(where: Where, thing: object) -> Holder | None:
    """A container, the names of a class, or an array of objects as a holder; None for anything else.

    >>> log = [1, 2]
    >>> holder = holder_of(Where("log"), log)
    >>> log.append(3); holder.put_back([1, 2]); log
    [1, 2]
    """
    if isinstance(thing, dict):
        # What it holds, not what it would make: a mapping that loads on demand would load everything.
        return Holder(where, (dict.keys(thing), dict.values(thing)), partial(_fill_mapping, thing))
    if isinstance(thing, type):
        getattr(thing, "__annotations__", None)  # made when first asked for, which is no change
        names: Mapping[str, object] = vars(thing)
        return Holder(where, (names.keys(), names.values()), partial(_fill_class, thing))
    if isinstance(thing, list | deque | set):
        return Holder(where, (thing,), partial(_fill, thing))
    if isinstance(thing, np.ndarray) and thing.dtype == object and thing.size and thing.flags.c_contiguous:
        return Holder(where, (thing.reshape(-1),), partial(_fill_array, thing))
    return None


def holder_of_names(where: Where, owner: object, names: tuple[str, ...]) -> Holder:
    """Chosen names of something as a holder."""
    chosen = Names(owner, names)
    return Holder(where, (names, chosen), chosen.fill)


def _halves(held: Held) -> zip[tuple[object, object]]:
    half = len(held) // 2
    return zip(held[:half], held[half:], strict=True)


def _fill_mapping(mapping: MutableMapping[object, object], held: Held) -> None:
    mapping.clear()
    for name, value in _halves(held):  # a Counter would add up what it is updated with
        mapping[name] = value


def _fill(container: list[object] | deque[object] | set[object], held: Held) -> None:
    container.clear()
    container.update(held) if isinstance(container, set) else container.extend(held)


def _fill_array(array: NDArray[np.object_], held: Held) -> None:
    flat = array.reshape(-1)
    for number, value in enumerate(held):
        flat[number] = value


def _fill_class(kind: type, held: Held) -> None:
    before = {str(name): value for name, value in _halves(held)}
    for name in [name for name in vars(kind) if name not in before]:
        delattr(kind, name)
    for name, value in before.items():
        if vars(kind).get(name, MISSING) is not value:
            setattr(kind, name, value)


def _set_item(names: dict[str, object], name: str, value: object) -> None:
    if value is MISSING:
        names.pop(name, None)
    else:
        names[name] = value
