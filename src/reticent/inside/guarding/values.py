"""Values that can change while they stay where they are: tensors, arrays, generators, buffers of bytes."""

from __future__ import annotations

import functools
import pickle
import random
from array import array
from collections.abc import Callable, Container
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from reticent.inside.guarding.holders import Where
from reticent.inside.guarding.sameness import bits, same_bits

COMPARED_BYTES = 2**20
"""Of a frozen tensor or an array so many bytes are compared: all of a small one, a part of a large one in turn. What is
written into a tensor in the usual way is found anyhow, by the version counter."""

COPIED_BYTES = 2**26
"""Up to so many bytes in all are copied, to be put back; what goes beyond is wiped if it was changed."""


class Numbers:
    """The memory of a tensor or an array; of a tensor that is trained, only where it is and its version."""

    def __init__(self, where: Where, value: Tensor | NDArray[Any], *, trained: bool = False):
        self.where, self.trained = where, trained
        self._tensor = value if isinstance(value, Tensor) else None
        self.alias = value.detach() if isinstance(value, Tensor) else _as_tensor(value)
        self._address = _address(self.alias)
        self._counts = not self.alias.is_inference()
        self.copied = not trained and self._address is not None and type(value) in _PLAIN
        self._once = _without_repeats(self.alias) if self.copied else self.alias
        self._bits = bits(self._once) if self.copied and self._once.is_contiguous() else None
        self._copy: Tensor | None = None
        self._version = 0
        self._from = 0

    @property
    def nbytes(self) -> int:
        """What a copy takes."""
        return self._once.nbytes if self.copied else 0

    def moved(self) -> bool:
        """Whether the tensor was given other memory or another shape."""
        tensor = self._tensor
        return tensor is not None and (_address(tensor) != self._address or tensor.shape != self.alias.shape)

    def begin(self) -> None:
        """Remember how it is now; a copy is made anew only where its owner has changed it."""
        version = self._now()
        if self.copied and (self._copy is None or version != self._version or self._differs()):
            self._copy = self._seen().clone()
        self._version = version

    def changed(self) -> bool:
        """Whether anything was written since, as far as it is looked at."""
        found = self._now() != self._version or self.moved() or self._differs()
        self._from = self._from + COMPARED_BYTES if self._from + COMPARED_BYTES < self.nbytes else 0
        return found

    def put_back(self) -> None:
        """Its memory and its values as they were; values without a copy are wiped, those trained are not ours."""
        with torch.no_grad():
            if self._tensor is not None and self.moved():
                self._tensor.data = self.alias
            if self._copy is not None:
                self._once.copy_(self._copy.view(self._once.dtype).view(self._once.shape))
            elif not self.trained:
                self._once.zero_()

    def _now(self) -> int:
        return self.alias._version if self._counts else 0

    def _seen(self) -> Tensor:
        return bits(self._once) if self._bits is None else self._bits

    def _differs(self) -> bool:
        """Whether the part in turn has other bits: what is written through `.data` counts no version."""
        if self._copy is None:
            return False
        if self.nbytes <= COMPARED_BYTES:
            return not same_bits(self._seen(), self._copy)
        part = slice(self._from, self._from + COMPARED_BYTES)
        return not same_bits(self._seen()[part], self._copy[part])


_PLAIN = (Tensor, nn.Parameter, np.ndarray, np.memmap)


class State:
    """The state of a generator, a buffer of bytes or what a function remembers: read and compared whole."""

    nbytes = 0

    def __init__(self, where: Where, value: object, read: Callable[[Any], object], write: Callable[[Any, Any], None]):
        self.where = where
        self._value, self._read, self._write = value, read, write
        self.begin()

    def moved(self) -> bool:
        """It stays where it is."""
        return False

    def begin(self) -> None:
        """Remember how it is now."""
        self._before = self._read(self._value)

    def changed(self) -> bool:
        """Whether it is another."""
        return self._read(self._value) != self._before

    def put_back(self) -> None:
        """As it was."""
        self._write(self._value, self._before)


class TrainedVector:
    """All trained parameters, as one vector that they are views of: compared whole, for `.data` counts no version."""

    nbytes = 0

    def __init__(self, vector: Tensor, parameters: list[tuple[Where, Tensor]]):
        self._vector, self._parameters = vector, parameters
        self._before = vector.clone()

    @property
    def where(self) -> Where:
        """The parameter that differs."""
        for where, parameter in self._parameters:
            start = parameter.storage_offset()
            before = self._before[start : start + parameter.numel()].view(parameter.shape)
            if not same_bits(bits(parameter), bits(before)):
                return where
        return Where("the model")

    def moved(self) -> bool:
        """Each parameter says this for itself."""
        return False

    def begin(self) -> None:
        """Remember how they are now."""
        self._before.copy_(self._vector)

    def changed(self) -> bool:
        """Whether they are others."""
        return not same_bits(bits(self._vector), bits(self._before))

    def put_back(self) -> None:
        """As they were."""
        self._vector.copy_(self._before)


Value = Numbers | State | TrainedVector


def value_of(where: Where, value: object, trained: Container[int] = ()) -> Numbers | State | None:
    """What can change in place, to be watched; None for anything else. `trained` has the ids of what others watch.

    >>> coins = random.Random(0)
    >>> state = value_of(Where("coins"), coins)
    >>> _ = coins.random()
    >>> state.changed()
    True
    """
    if isinstance(value, Tensor) or (isinstance(value, np.ndarray) and _can_be_written(value)):
        return Numbers(where, value, trained=id(value) in trained)
    for kinds, read, write in _STATES:
        if isinstance(value, kinds):
            return State(where, value, read, write)
    return None


def _can_be_written(value: NDArray[Any]) -> bool:
    strides = value.flags.c_contiguous or (value.dtype.kind in "fiub" and min(value.strides) > 0)
    return value.flags.writeable and value.dtype != object and strides


def _as_tensor(value: NDArray[Any]) -> Tensor:
    return torch.from_numpy(value.reshape(-1).view(np.uint8) if value.flags.c_contiguous else value)


def _address(tensor: Tensor) -> int | None:
    """Where a tensor's numbers are; None where they are not in memory of the usual kind."""
    try:
        return None if tensor.is_meta else tensor.data_ptr()
    except (RuntimeError, NotImplementedError):
        return None


def _without_repeats(tensor: Tensor) -> Tensor:
    """Every number of an expanded tensor once."""
    for axis, step in enumerate(tensor.stride()):
        if step == 0 and tensor.shape[axis] > 1:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def _set_bytes(buffer: bytearray, before: bytes) -> None:
    buffer[:] = before


def _set_array(buffer: array[Any], before: bytes) -> None:
    del buffer[:]
    buffer.frombytes(before)


def _torch_state(rng: torch.Generator) -> bytes:
    return rng.get_state().numpy().tobytes()


def _set_torch(rng: torch.Generator, before: bytes) -> None:
    rng.set_state(torch.frombuffer(bytearray(before), dtype=torch.uint8))


def _numpy_state(rng: np.random.Generator) -> bytes:
    return pickle.dumps(rng.bit_generator.state)


def _set_numpy(rng: np.random.Generator, before: bytes) -> None:
    rng.bit_generator.state = pickle.loads(before)  # our own bytes


def _misses(function: functools._lru_cache_wrapper[Any]) -> int:
    return function.cache_info().misses


def _forget(function: functools._lru_cache_wrapper[Any], _before: int) -> None:
    function.cache_clear()


_STATES: list[tuple[Any, Callable[[Any], object], Callable[[Any, Any], None]]] = [
    (torch.Generator, _torch_state, _set_torch),
    (np.random.Generator, _numpy_state, _set_numpy),
    (
        np.random.RandomState,
        lambda rng: pickle.dumps(rng.get_state()),
        lambda rng, old: rng.set_state(pickle.loads(old)),
    ),
    (random.Random, random.Random.getstate, random.Random.setstate),
    (bytearray, bytes, _set_bytes),
    (array, array.tobytes, _set_array),
    (functools._lru_cache_wrapper, _misses, _forget),
]
