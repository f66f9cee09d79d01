"""The walk: from a model and its loss to everything in Python that their code can write without looking for it."""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType

import torch
from torch import Tensor, nn
from torch.nn.modules import module as everywhere

from reticent.errors import ModelError
from reticent.inside.guarding import values
from reticent.inside.guarding.holders import MISSING, Holder, Names, Where, holder_of, holder_of_names
from reticent.inside.guarding.values import Numbers, State, value_of

MOST = 2**20
"""So many things are looked at, and a model that holds more is refused."""

Step = tuple[str, object]

_TABLES = frozenset({"_parameters", "_buffers", "_modules"})
"""Attributes of a module that are left out of a path, as in the names of its parameters."""

_CLOSED = frozenset({"torch", "numpy", "reticent"}) | sys.stdlib_module_names
"""What belongs to these is not looked into: modules, containers, tensors and arrays of theirs are."""

_AROUND_LOSSES = ("reticent.losses", "reticent.gradients.grouped")
"""Of ours, what holds a loss of the user's is looked into."""

_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, ModuleType, CodeType})


@dataclass(eq=False)
class Reached:
    """All that was found: what holds things, and what changes in place."""

    holders: list[Holder] = field(default_factory=list)
    values: list[Numbers | State] = field(default_factory=list)
    room: int = 0
    trained: frozenset[int] = frozenset()

    def note(self, value: Numbers | State) -> None:
        """Watch a value, with a copy if there is room for one."""
        if isinstance(value, Numbers):
            value.copied = value.copied and value.nbytes <= self.room
            self.room -= value.nbytes
        self.values.append(value)

    def parameters(self) -> list[tuple[Where, Tensor]]:
        """The trained parameters."""
        return [(value.where, value.alias) for value in self.values if isinstance(value, Numbers) and value.trained]


def walk(model: nn.Module, loss: object = None, *, trained: bool = False) -> Reached:
    """Everything that can be reached from a model and its loss; each thing once, under the first name it is met by.

    `trained` says that the values of trained parameters are looked at on their own.

    >>> linear = nn.Linear(2, 1)
    >>> linear.log = {"seen": [torch.ones(1)]}
    >>> sorted(value.where.path() for value in walk(linear).values)
    ['bias', 'log.seen.0', 'weight']
    """
    modules = list(model.named_modules())
    waiting: list[tuple[Where, object]] = [(Where("a hook of all modules"), _hooks_of_all_modules())]
    waiting += [(Where(f"the loss ({_kind(loss)})"), loss)]
    waiting += [(Where(f"module {path!r} ({_kind(module)})"), module) for path, module in reversed(modules)]
    met = {id(thing): thing for _, thing in waiting}
    apart = frozenset(id(parameter) for parameter in model.parameters() if trained and parameter.requires_grad)
    reached, count = Reached(room=values.COPIED_BYTES, trained=apart), 0
    while waiting:
        where, thing = waiting.pop()
        steps = list(_steps(where, thing, reached))
        count += len(steps)
        if count > MOST:
            raise ModelError(
                f"{where.root()} holds more than {MOST} things (at {where.path()!r}), too many to see whether forward "
                "keeps something of the examples: hold data sets and large tables outside of the model"
            )
        for step, value in reversed(steps):
            if type(value) not in _ATOMS and id(value) not in met:
                met[id(value)] = value
                waiting.append((Where(step, where), value))
    return reached


def _hooks_of_all_modules() -> tuple[object, ...]:
    """What runs in every module's passes, forward and backward."""
    return (
        everywhere._global_forward_pre_hooks,
        everywhere._global_forward_hooks,
        everywhere._global_backward_pre_hooks,
        everywhere._global_backward_hooks,
    )


def _kind(thing: object) -> str:
    return getattr(thing, "__name__", type(thing).__name__)


def _steps(where: Where, thing: object, reached: Reached) -> Iterator[Step]:
    """Note a thing if it is a holder or a value, and give what it leads to."""
    value = value_of(where, thing, reached.trained)
    if value is not None:
        reached.note(value)
    holder = holder_of(where, thing) if not isinstance(thing, type) or _open(thing) else None
    if holder is not None:
        reached.holders.append(holder)
        held = holder.held()
        if isinstance(thing, dict | type):
            names = held[: len(held) // 2]
            yield from zip(map(_name, names), held[len(held) // 2 :], strict=True)
            yield from (("a key", name) for name in names if not isinstance(name, str))
        else:
            yield from ((str(number), one) for number, one in enumerate(held))
    if isinstance(thing, tuple | frozenset):
        yield from ((str(number), one) for number, one in enumerate(thing))
    elif isinstance(thing, FunctionType):
        yield from _of_function(where, thing, reached) if _open(thing) else ()
    elif isinstance(thing, MethodType):
        yield from (("", thing.__func__), ("", thing.__self__))
    elif isinstance(thing, BuiltinMethodType):  # such as the append of a list
        yield "", thing.__self__
    elif isinstance(thing, functools.partial):
        yield from (("", thing.func), ("", thing.args), ("", thing.keywords))
    elif isinstance(thing, staticmethod | classmethod):
        yield "", thing.__func__
    elif isinstance(thing, property):
        yield from (("", thing.fget), ("", thing.fset))
    elif isinstance(thing, nn.Module | Tensor) or (not isinstance(thing, type) and _readable(type(thing))):
        yield from _of_object(where, thing, reached)


def _name(key: object) -> str:
    if isinstance(key, str | int):
        return "" if key in _TABLES else str(key)
    return type(key).__name__


def _open(thing: type | FunctionType) -> bool:
    """Whether a class or function is the user's own."""
    home = getattr(thing, "__module__", None) or ""
    return home.partition(".")[0] not in _CLOSED or home.startswith(_AROUND_LOSSES)


def _readable(kind: type) -> bool:
    """Whether objects of a class are looked into."""
    return _open(kind) or kind.__module__ in ("types", "argparse", "collections", "queue")


def _of_object(where: Where, thing: object, reached: Reached) -> Iterator[Step]:
    """The attributes of an object, and its class."""
    table = getattr(thing, "__dict__", None)
    if isinstance(table, dict):
        yield "", table
    if isinstance(thing, Tensor):  # as a parameter has, by which people watch gradients
        yield "hooks", thing._backward_hooks
    if isinstance(thing, nn.Module):  # a scripted one keeps them elsewhere
        yield from (*thing.named_parameters(recurse=False), *thing.named_buffers(recurse=False))
    own = [name for kind in type(thing).__mro__ if _open(kind) for name in _slots(kind)]
    yield from _of_names(Where("", where), thing, tuple(own), reached)
    yield from (("", kind) for kind in type(thing).__mro__ if _open(kind))


def _slots(kind: type) -> Iterator[str]:
    said = vars(kind).get("__slots__", ())
    for name in (said,) if isinstance(said, str) else said:
        if name not in ("__dict__", "__weakref__"):
            hidden = name.startswith("__") and not name.endswith("__")
            yield f"_{kind.__name__.lstrip('_')}{name}" if hidden else name


def _of_function(where: Where, function: FunctionType, reached: Reached) -> Iterator[Step]:
    """What a function keeps from call to call: attributes, defaults, its closure, and the globals it uses."""
    yield from (("", function.__dict__), ("", function.__defaults__), ("", function.__kwdefaults__))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield from ((name, held) for _, held in _of_names(Where(name, where), cell, ("cell_contents",), reached))
    used = tuple(sorted(set(_globals_of(function.__code__))))
    for name, value in _of_names(Where("", where), function.__globals__, used, reached):
        if not isinstance(value, FunctionType | type) or value.__module__ == function.__module__:
            yield name, value  # other files are other people's


def _of_names(where: Where, owner: object, names: tuple[str, ...], reached: Reached) -> Iterator[Step]:
    if names:
        reached.holders.append(holder_of_names(where, owner, names))
    yield from ((name, held) for name, held in zip(names, Names(owner, names), strict=True) if held is not MISSING)


def _globals_of(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "STORE_GLOBAL"):
            yield instruction.argval
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals_of(inner)
