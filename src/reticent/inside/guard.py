"""The guard: answering a query leaves no trace in the model, for what a forward pass keeps has passed no door."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from operator import is_

import torch
from torch import Tensor, nn
from torch._C import DisableTorchFunction

from reticent.errors import ModelError
from reticent.gradients.randomness import undone_by
from reticent.inside.guarding.holders import Where
from reticent.inside.guarding.values import TrainedVector, Value
from reticent.inside.guarding.walk import walk


class Guard:
    """Watches a model, and its loss, while private examples pass through them.

    Promise: after the block all that was reached from them in the beginning is as it was, or it raises `ModelError`,
    having put back or wiped what was changed. If the block itself fails, everything is put back without a word. What
    is held is compared by identity, tensors by their version counter: it costs a few microseconds a module.

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

    def __init__(self, model: nn.Module, loss: object = None, vector: Tensor | None = None):
        self._model, self._loss, self._vector = model, loss, vector
        self._inside = False
        self._remember()

    def _remember(self) -> None:
        """All that can be reached now; asked again only when its owner has changed something between two queries."""
        reached = walk(self._model, self._loss, trained=self._vector is not None)
        self._values = reached.values
        self._trained = None if self._vector is None else TrainedVector(self._vector, reached.parameters())
        self._holders = [(holder, holder.held()) for holder in reached.holders]
        self._empty = [holder.views[0] for holder, held in self._holders if not held]
        self._full = [view for holder, held in self._holders if held for view in holder.views]
        self._lengths = list(map(len, self._full))
        self._flat = [thing for _, held in self._holders for thing in held]

    def _still(self) -> bool:
        """Whether everything holds just what it held: this is asked twice for every query, and must be fast."""
        return (
            not any(self._empty)
            and list(map(len, self._full)) == self._lengths
            and all(map(is_, chain.from_iterable(self._full), self._flat))
        )

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Nothing that happens inside outlives it; one guard within another leaves the trained vector to that."""
        within, found = self._inside, None
        with DisableTorchFunction():
            values = self._begin(within)
        self._inside = True
        try:
            with undone_by(partial(self._undo, self._values)):
                yield
        finally:
            self._inside = within
            found = self._undo(values)
        if found is not None:
            raise ModelError(
                f"{found.root()} keeps something of the examples it is given (at {found.path()!r}): that would leave "
                "the vault without noise. It was put back and nothing was released; let forward change no parameter, "
                "buffer or attribute, nor anything else that stays (nn.Embedding(max_norm=), running statistics and "
                "the old nn.utils.weight_norm do, its parametrization does not). What is made once and kept, such as "
                "a mask, must depend neither on the examples nor on their number: make it in __init__"
            )

    def _begin(self, within: bool) -> list[Value]:
        """Remember how everything is; what the owner has changed since the last query is the owner's."""
        if not self._still() or any(value.moved() for value in self._values):
            self._remember()
        values: list[Value] = [*self._values]
        if self._trained is not None and not within:
            values.append(self._trained)
        for value in values:
            value.begin()
        return values

    def _undo(self, values: Sequence[Value]) -> Where | None:
        """Put back what is not as it was, and say where the first of it is; what is the same again is no news."""
        with DisableTorchFunction(), torch.no_grad():
            return self._put_back(values)

    def _put_back(self, values: Sequence[Value]) -> Where | None:
        found: Where | None = None
        for holder, before in [] if self._still() else self._holders:
            now = holder.held()
            if len(now) == len(before) and all(map(is_, now, before)):
                continue
            if found is None and not holder.same(before, now):
                found = holder.differing(before)
            holder.put_back(before)
        for value in values:
            if value.changed():
                found = found or value.where
                value.put_back()
        return found
