"""The follower: knows of every tensor in a forward pass whose it is, because it sees each function that makes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from reticent.gradients.following.places import Answer, Each, EveryExample, Lost, NotFollowed, Place, Where
from reticent.gradients.following.routes import Routed

Function: TypeAlias = Callable[..., object]
"""A function of torch."""
Args: TypeAlias = tuple[object, ...]
"""What a function was given, in order."""
Kwargs: TypeAlias = dict[str, object]
"""What a function was given by name."""
HOMES: tuple[object, ...] = (torch, Tensor, functional, torch.special)


# Says where the examples are in a function's result; the result is None where it is not made yet.
Follow: TypeAlias = "Callable[[Whose, Args, Kwargs, object], Answer]"
FOLLOWED: dict[Function, Follow] = {}
ROUTED: dict[Function, Follow] = {}
"""What functions do with rows that are routed to experts, and with what these are routed by: see `routing`."""
ABOUT_SHAPES: set[Function] = set()
"""Functions that tell shapes and types, never values."""


def named(name: str, homes: Iterable[object] = HOMES) -> list[Function]:
    """All functions of torch with this name: as a function, as a method, changing in place or not."""
    spelt = [name] if name.startswith("__") else [name, name + "_"]
    found = [getattr(home, one) for home in homes for one in spelt if callable(getattr(home, one, None))]
    if not found:
        raise LookupError(f"torch has no {name}")
    return found


def getter(name: str) -> Function:
    """The function behind a property of tensors."""
    found: Function = getattr(Tensor, name).__get__
    return found


def follows(*names: str, homes: Iterable[object] = HOMES, lone: bool = False) -> Callable[[Follow], Follow]:
    """Register how the examples go through the functions with these names.

    `lone` functions take one tensor; if others come along, as some options are, these must be nobody's.
    """

    def register(follow: Follow) -> Follow:
        registered = _lone(follow) if lone else follow
        for name in names:
            FOLLOWED.update(dict.fromkeys(named(name, homes), registered))
        return follow

    return register


_NUMBERS = {int, float, bool, type(None)}


def _others(args: Args, kwargs: Kwargs) -> Args | list[object]:
    """All that a function was given but the tensor it is about."""
    if not kwargs:
        return args[1:]
    return [*args[1:], *kwargs.values()] if args else list(kwargs.values())[1:]


def _lone(follow: Follow) -> Follow:
    def checked(whose: Whose, args: Args, kwargs: Kwargs, result: object) -> Answer:
        for value in _others(args, kwargs):
            if type(value) not in _NUMBERS and whose.touched(value):
                raise NotFollowed("one of its settings belongs to the examples")
        return follow(whose, args, kwargs, result)

    return checked


# On a tensor: the pass it was made in, and where that pass's examples are in it.
_MARK = "_reticent_whose"
_NOBODYS = (None, None)
_LISTS = (list, tuple)
NOT_PUT_BACK = "rows routed to experts are used before they are put back"


class Whose:
    """Marks every tensor of one pass. What carries no mark was not seen being made: see `ambient`."""

    def __init__(self, n: int, ambient: dict[int, Tensor], *, curious: bool = False):
        self.n = n
        self.ambient = ambient
        """Tensors that were there before the pass, as weights and masks: the same in every pass, so nobody's."""
        self._curious = curious
        self._routing = False
        self._pass = object()

    def begin(self, tensor: Tensor) -> Tensor:
        """Give an input of the pass, with its examples on the first axis."""
        own = tensor.detach()
        setattr(own, _MARK, (self._pass, Place(0)))
        return own

    def of(self, tensor: Tensor) -> Where:
        """Say where the examples are in a tensor."""
        mark: tuple[object, Where] | None = getattr(tensor, _MARK, None)
        if mark is None:
            if id(tensor) not in self.ambient:
                if not self._curious:
                    raise NotFollowed("a tensor is used that was not seen being made")
                self.ambient[id(tensor)] = tensor
            return None
        made_in, where = mark
        if where is None or (made_in is self._pass and type(where) is Place):
            return where
        if isinstance(where, Lost):
            raise NotFollowed(where.why)
        if isinstance(where, Routed):
            raise NotFollowed(NOT_PUT_BACK)
        if made_in is self._pass:
            return where
        if isinstance(where, Place) and not where.bound:
            return None
        raise NotFollowed("something of other examples, from an earlier pass, is used")

    def alone(self, tensor: object) -> Tensor | None:
        """What something of all examples together would be for each of them alone, where that is known."""
        made_in, where = getattr(tensor, _MARK, _NOBODYS)
        return where.own if made_in is self._pass and isinstance(where, Lost) else None

    def routed(self, value: object) -> Routed | None:
        """What a value is to a routing of rows to experts: only what knows of routings may ask."""
        made_in, where = getattr(value, _MARK, _NOBODYS) if isinstance(value, Tensor) else _NOBODYS
        return where if made_in is self._pass and isinstance(where, Routed) else None

    def give(self, tensor: Tensor, where: Where) -> None:
        """Note where the examples are in a tensor from now on."""
        self._routing = self._routing or isinstance(where, Routed)
        setattr(tensor, _MARK, (self._pass, where))

    def place(self, tensor: object) -> Place | None:
        """The same for a tensor, or for what is none, where only a place will do."""
        where = self.of(tensor) if isinstance(tensor, Tensor) else None
        if where is None or isinstance(where, Place):
            return where
        raise NotFollowed("what was sorted or packed is used before it is put back")

    def after(self, function: Function, args: Args, kwargs: Kwargs, result: object = None) -> Answer:
        """Say where the examples are in the result of a function."""
        follow = FOLLOWED.get(function)
        if self._routing and any(self.routed(value) is not None for value in (*args, *kwargs.values())):
            follow = ROUTED.get(function)
        if follow is not None:
            try:
                answer = follow(self, args, kwargs, result)
            except NotFollowed as lost:
                if not _fresh(result, args, kwargs):
                    raise
                return Lost(str(lost), lost.own)
            if kwargs and answer is not None and kwargs.get("out") is not None:
                raise NotFollowed("the result goes into a tensor given as out=")
            return answer
        if any(self.touched(value) for value in (*args, *kwargs.values())):
            raise NotFollowed("what it does with the examples is not known")
        return None

    def touched(self, value: object) -> bool:
        """Say whether something of the examples is in a nested argument."""
        return any(where is not None and (not isinstance(where, Place) or where.bound) for where in self.all_in(value))

    def all_in(self, value: object) -> Iterator[Where]:
        """Where the examples are in each tensor of a nested argument."""
        if isinstance(value, Tensor):
            yield self.of(value)
        elif isinstance(value, dict):
            yield from self.all_in(list(value.values()))
        elif isinstance(value, _LISTS):
            for item in value:
                yield from self.all_in(item)

    def mark(self, result: object, answer: Answer, target: object = None) -> None:
        """Note where the examples are in a result; `target` is what the function was given first."""
        if isinstance(result, Tensor):
            assert not isinstance(answer, Each)
            if result is target:
                self._refuse_filling(result, answer)
            elif answer is None:
                setattr(result, _MARK, _NOBODYS)
            elif isinstance(answer, Place):
                self._refuse_misfit(result, answer)
                setattr(result, _MARK, (self._pass, answer))
            else:
                self.give(result, answer)
        elif isinstance(result, _LISTS):
            each = answer.places if isinstance(answer, Each) else (answer,) * len(result)
            for item, where in zip(result, each, strict=True):
                self.mark(item, where, target)
        elif answer is not None and result is not None and not _loose(answer):
            raise NotFollowed("values of the examples are read, and what the model does may depend on them")

    def _refuse_misfit(self, result: Tensor, place: Place) -> None:
        shape, axis = result.shape, place.axis
        if len(shape) <= axis or shape[axis] != place.before * self.n * place.after:
            raise NotFollowed("the examples are not where they should be")

    def _refuse_filling(self, target: Tensor, answer: Where) -> None:
        """Refuse to change a tensor in place if it is then of other examples: others may hold views of it."""
        before = self.routed(target) or self.of(target)
        if before is answer or answer is None or isinstance(before, EveryExample) or _loose(answer):
            return
        if isinstance(before, Place) and before.bound and isinstance(answer, Place) and before.same(answer):
            return
        raise NotFollowed("a tensor is filled in place with what belongs to the examples")


def _loose(where: Answer) -> bool:
    return isinstance(where, Place) and not where.bound


def _fresh(result: object, args: Args, kwargs: Kwargs) -> bool:
    """Say whether a result is made of new tensors, which can be marked as lost."""
    made = list(result) if isinstance(result, list | tuple) else [result]
    old = {id(value) for value in (*args, *kwargs.values())}
    return all(isinstance(value, Tensor) and id(value) not in old for value in made)


def given(args: Args, kwargs: Kwargs, position: int, name: str, default: object = None) -> object:
    """An argument by its position or its name."""
    return args[position] if len(args) > position else kwargs.get(name, default)


def first(args: Args, kwargs: Kwargs) -> Tensor:
    """The tensor a function is about."""
    value = args[0] if args else kwargs.get("input", kwargs.get("self"))
    if not isinstance(value, Tensor):
        raise NotFollowed("its first argument is no tensor")
    return value
