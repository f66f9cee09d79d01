"""The cipher in bulk: the words of AES in counter mode, by the OpenSSL that Python itself has loaded where it can.

Both ways give the same words (tests/inside/test_cipher.py); OpenSSL's takes half the time, and has no set-up.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from randomgen import AESCounter

Words = NDArray[np.uint64]
KEY = 16
_AT_ONCE = 2**14  # blocks of 16 bytes: what is counted stays in cache
_KEPT = threading.local()


def fill(out: Words, secret: bytes) -> None:
    """Fill with AES-128 of consecutive counters, from a key and a first counter of 16 bytes each, little-endian.

    >>> out = np.empty(2, np.uint64)
    >>> fill(out, bytes(32))
    >>> out.tobytes().hex()
    '66e94bd4ef8a2c3b884cfa59ca342b2e'
    """
    encrypt = _openssl()
    if encrypt is None or not _plain(out, secret):
        by_generator(out, secret)
    else:
        encrypt(out, secret)


def by_generator(out: Words, secret: bytes) -> None:
    """The same from the generator that all other streams have."""
    made = AESCounter(key=int.from_bytes(secret[:KEY], "little"), counter=int.from_bytes(secret[KEY:], "little"))
    out[:] = np.asarray(made.random_raw(len(out)), np.uint64)


def _plain(out: Words, secret: bytes) -> bool:
    """Whether no counter is carried beyond its lower half, and the memory is one piece."""
    return int.from_bytes(secret[KEY : KEY + 8], "little") + len(out) < 2**64 and out.flags.c_contiguous


@cache
def _openssl() -> Callable[[Words, bytes], None] | None:
    """AES by the library behind `hashlib`, if it can be called from here."""
    try:
        import _hashlib

        library: Any = ctypes.CDLL(_hashlib.__file__)
        context, cipher = library.EVP_CIPHER_CTX_new, library.EVP_aes_128_ecb
        begin, update, end = library.EVP_EncryptInit_ex, library.EVP_EncryptUpdate, library.EVP_CIPHER_CTX_free
    except (ImportError, AttributeError, OSError):
        return None
    pointer, whole = ctypes.c_void_p, ctypes.c_int
    context.restype = cipher.restype = pointer
    context.argtypes = cipher.argtypes = []
    begin.argtypes, begin.restype = [pointer, pointer, pointer, ctypes.c_char_p, ctypes.c_char_p], whole
    update.argtypes, update.restype = [pointer, pointer, ctypes.POINTER(whole), pointer, whole], whole
    end.argtypes, end.restype = [pointer], None

    def encrypt(out: Words, secret: bytes) -> None:
        counters, made, state = _counters(), whole(), _context(context, end)
        counters[: (len(out) + 1) // 2, 1] = int.from_bytes(secret[KEY + 8 :], "little")
        first = int.from_bytes(secret[KEY : KEY + 8], "little")
        good = state.begun or begin(state.address, cipher(), None, None, None) == 1
        state.begun = good  # the kind of cipher is looked up once: that takes longer than a thousand words
        good = good and begin(state.address, None, None, secret[:KEY], None) == 1
        for start in range(0, len(out), 2 * _AT_ONCE):
            part = out[start : start + 2 * _AT_ONCE]
            blocks = counters[: -(-len(part) // 2)]
            np.add(_NUMBERS[: len(blocks)], np.uint64(first + start // 2), out=blocks[:, 0])
            into = part if len(part) % 2 == 0 else np.empty(len(part) + 1, np.uint64)
            good = good and update(state.address, into.ctypes.data, made, blocks.ctypes.data, blocks.nbytes) == 1
            if not good or made.value != blocks.nbytes:
                raise RuntimeError("the cipher failed: no noise was made")
            if into is not part:
                part[:] = into[:-1]

    return encrypt


class _Context:
    """A thread's own state of the cipher; the library wipes it when the thread ends."""

    def __init__(self, new: Callable[[], int], end: Callable[[int], None]):
        self.address, self.begun = new(), False
        if not self.address:
            raise MemoryError("the cipher has no memory: no noise was made")
        weakref.finalize(self, end, self.address)


def _context(new: Callable[[], int], end: Callable[[int], None]) -> _Context:
    if not hasattr(_KEPT, "context"):
        _KEPT.context = _Context(new, end)
    kept: _Context = _KEPT.context
    return kept


_NUMBERS = np.arange(_AT_ONCE, dtype=np.uint64)


def _counters() -> NDArray[np.uint64]:
    """Memory for the counters of a thread."""
    if not hasattr(_KEPT, "counters"):
        _KEPT.counters = np.empty((_AT_ONCE, 2), np.uint64)
    kept: NDArray[np.uint64] = _KEPT.counters
    return kept
