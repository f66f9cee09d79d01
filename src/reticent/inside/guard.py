"""The guard: answering a query leaves no trace in the model, for what a forward pass keeps has passed no door."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from reticent.errors import ModelError

_TORCHS_OWN = frozenset(vars(nn.Module()))
"""Attributes that every module has: hooks, modes and the tables of its parts, which are looked at on their own."""
_CONTAINERS = (list, dict, set, deque)
_COPIED_BYTES = 2**26
"""Frozen tensors up to so many bytes in all are copied, to be put back; larger ones are wiped if they were changed."""

_COMPARED_BYTES = 2**20
"""The values of frozen tensors up to so many bytes are compared, of larger ones the version only."""

Table = dict[str, object]
Container = list[object] | dict[object, object] | set[object] | deque[object]


class Guard:
    """Watches a model while private examples pass through it.

    Promise: after the block its parameters, buffers and attributes are those from before, or it raises `ModelError`,
    having put back or wiped what was changed. Objects are compared by identity, tensors by their version counter: it
    costs a few microseconds a module.

    >>> class Keeps(nn.Module):
    ...     def forward(self, x):
    ...         self.seen = x
    ...         return x
    >>> model = nn.Sequential(Keeps())
    >>> with Guard(model)():
    ...     _ = model(torch.ones(1))
    Traceback (most recent call last):
    reticent.errors.ModelError: module '0' (Keeps) keeps something of the examples it is given (at 'seen'): ...
    >>> hasattr(model[0], "seen")
    False
    """

    def __init__(self, model: nn.Module):
        self._model = model
        self._copies: dict[int, tuple[int, Tensor]] = {}
        self._identities: list[tuple[int, ...]] = []
        self._remember()

    def _remember(self) -> None:
        """What every module holds now; asked again only when its owner has changed something between two queries."""
        self._paths: list[str] = []
        self._tables: list[Table] = []
        for path, module in self._model.named_modules():
            for table in (vars(module), module._parameters, module._buffers, module._modules):
                self._paths.append(path)
                self._tables.append(table)
        self._kept = [dict(table) for table in self._tables]
        own = [(name, value) for kept in self._kept for name, value in kept.items() if name not in _TORCHS_OWN]
        self._containers = [(name, value) for name, value in own if isinstance(value, _CONTAINERS)]
        self._tensors = [(name, value) for name, value in own if isinstance(value, Tensor)]
        self._identities = self._looked()

    def _looked(self) -> list[tuple[int, ...]]:
        return [tuple(map(id, table.values())) for table in self._tables]

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Nothing that happens inside outlives it."""
        if self._looked() != self._identities:
            self._remember()
        self._copy_frozen()
        held = [_held(container) for _, container in self._containers]
        versions = [tensor._version for _, tensor in self._tensors]
        changed: str | None = None
        try:
            yield
        finally:
            changed = self._undo(held, versions)
        if changed is not None:
            raise ModelError(
                f"{changed}: that would leave the vault without noise. It was put back and nothing was released; let "
                "forward change no parameter, buffer or attribute (nn.Embedding(max_norm=) and running statistics do)"
            )

    def _copy_frozen(self) -> None:
        """Copies of buffers and frozen parameters, made anew only where their owner has changed one."""
        room = _COPIED_BYTES
        for _, tensor in self._tensors:
            if tensor.requires_grad:
                continue  # the trial puts back what is trained
            room -= tensor.nbytes
            known = self._copies.get(id(tensor))
            if room >= 0 and (known is None or known[0] != tensor._version):
                self._copies[id(tensor)] = tensor._version, tensor.detach().clone()

    def _undo(self, held: list[list[object]], versions: list[int]) -> str | None:
        """Put back what is not as it was, and say what the first of it is."""
        found: str | None = None
        for place, (known, now) in enumerate(zip(self._identities, self._looked(), strict=True)):
            if known != now:
                table, kept = self._tables[place], self._kept[place]
                found = found or self._named(place, table)
                table.clear()
                table.update(kept)
        for (name, container), before in zip(self._containers, held, strict=True):
            if list(map(id, _held(container))) != list(map(id, before)):
                found = found or self._said(name, container)
                _refill(container, before)
        with torch.no_grad():
            for (name, tensor), version in zip(self._tensors, versions, strict=True):
                if tensor._version != version or self._written(tensor):
                    found = found or self._said(name, tensor)
                    if not tensor.requires_grad:
                        copy = self._copies.pop(id(tensor), None)
                        tensor.copy_(copy[1]) if copy is not None else tensor.zero_()
        return found

    def _written(self, tensor: Tensor) -> bool:
        """Whether a frozen tensor has other values: what is written through `.data` counts no version."""
        copy = self._copies.get(id(tensor))
        if tensor.requires_grad or copy is None or tensor.nbytes > _COMPARED_BYTES:
            return False
        return not torch.equal(_bits(tensor), _bits(copy[1]))

    def _named(self, place: int, now: Table) -> str:
        """The module and the name in it that differs."""
        kept = self._kept[place]
        names = [name for name in {**kept, **now} if kept.get(name) is not now.get(name)]
        return self._sentence(self._paths[place], names[0] if names else "its parts")

    def _said(self, name: str, value: object) -> str:
        place = next(i for i, kept in enumerate(self._kept) if kept.get(name) is value)
        return self._sentence(self._paths[place], name)

    def _sentence(self, path: str, name: str) -> str:
        kind = type(self._model.get_submodule(path)).__name__
        return f"module {path!r} ({kind}) keeps something of the examples it is given (at {name!r})"


def _bits(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def _held(container: Container) -> list[object]:
    """What a container holds; of a dict, its keys and values in turn."""
    if isinstance(container, dict):
        return [part for item in container.items() for part in item]
    return list(container)


def _refill(container: Container, held: list[object]) -> None:
    """The container as it was."""
    container.clear()
    if isinstance(container, dict):
        container.update(zip(held[::2], held[1::2], strict=True))
    elif isinstance(container, set):
        container.update(held)
    else:
        container.extend(held)
