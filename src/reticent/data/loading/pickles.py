"""Pickles that hold arrays and lists, such as the official CIFAR batches, opened without trusting them.

Nothing of numpy, or of anything else, is called by the pickle: what it names are stand-ins of ours, which check before
they believe. The steps it may take are listed; Python's own reader in Python takes them, since the fast one asks for as
much memory as a pickle tells it to.
"""

from __future__ import annotations

import io
import math
import pickle
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from reticent.errors import DataError
from reticent.reading import reading

_KINDS = ("u1", "i1", "i2", "i4", "i8", "f4", "f8")
_STEPS = (
    *("PROTO", "FRAME", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1"),
    *("BINFLOAT", "EMPTY_TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "TUPLE", "EMPTY_LIST", "APPEND", "APPENDS"),
    *("EMPTY_DICT", "SETITEM", "SETITEMS", "BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET"),
    *("SHORT_BINSTRING", "BINSTRING", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "SHORT_BINUNICODE", "BINUNICODE"),
    *("BINUNICODE8", "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD"),
)


class _Kind:
    """In the place of a dtype."""

    def __init__(self, name: object, *_rest: object):
        said = name.decode("ascii") if isinstance(name, bytes) else name
        if said not in _KINDS:
            raise DataError(f"the pickle holds an array of the type {name!r}, which a dataset has no use for")
        self.dtype = np.dtype(str(said))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(">" if state[1] in (">", b">") else "<")


class _Begun:
    """In the place of an array: its shape and bytes must belong together."""

    def __init__(self, *_rest: object):
        self.array: npt.NDArray[Any] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, by_columns, data = state
        sized = isinstance(shape, tuple) and all(type(size) is int and size >= 0 for size in shape)
        if not (sized and isinstance(kind, _Kind) and isinstance(data, bytes)):
            raise DataError("the pickle holds an array without a shape, a type and bytes")
        if math.prod(shape) * kind.dtype.itemsize != len(data):
            raise DataError(f"the pickle holds {len(data)} bytes for an array of the shape {shape}")
        order = "F" if by_columns is True else "C"
        self.array = np.frombuffer(data, kind.dtype).reshape(shape, order=order)  # type: ignore[call-overload]


class _Array:
    """In the place of numpy's class of arrays, which is only ever named."""


def _encoded(text: object, coding: object = "latin1") -> bytes:
    """How newer Pythons write bytes for older ones."""
    if not isinstance(text, str) or coding not in ("latin1", b"latin1"):
        raise DataError("the pickle holds bytes in a form that no dataset has")
    return text.encode("latin1")


_NAMES: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Begun,
    ("numpy._core.multiarray", "_reconstruct"): _Begun,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Kind,
    ("_codecs", "encode"): _encoded,
}


class _ArraysOnly(pickle._Unpickler):
    """Reads what takes the listed steps and names the listed things; anything else is refused."""

    dispatch: ClassVar = {
        getattr(pickle, name)[0]: pickle._Unpickler.dispatch[getattr(pickle, name)[0]] for name in _STEPS
    }

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in of ours."""
        if (module, name) not in _NAMES:
            raise DataError(f"the pickle asks for {module}.{name}, which a dataset has no use for: not opened")
        return _NAMES[module, name]


def unpickle_arrays(raw: bytes) -> dict[bytes, Any]:
    """Open a pickled dictionary of arrays and lists.

    >>> unpickle_arrays(pickle.dumps({b"labels": [1, 2], b"data": np.zeros(2, np.uint8)}))
    {b'labels': [1, 2], b'data': array([0, 0], dtype=uint8)}
    """
    with reading("the pickle"):
        found = _ArraysOnly(io.BytesIO(raw), encoding="bytes").load()
    if not isinstance(found, dict):
        raise DataError("the pickle holds no dictionary of arrays")
    return {name: value.array if isinstance(value, _Begun) else value for name, value in found.items()}
