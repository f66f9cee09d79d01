"""Framing: lines that carry their length and a hash that chains each to the one before, so that any change shows."""

from __future__ import annotations

import hashlib
import re

_HEAD = re.compile(rb'\{"length":([1-9][0-9]{0,8}),"chain":"([0-9a-f]{64})",')
BEGINS = b'{"length":'
"""How every framed line begins."""


def begin(header: bytes) -> bytes:
    """The hash that the first line is chained to: that of the line above it."""
    return hashlib.sha256(header).digest()


def link(before: bytes, body: bytes) -> bytes:
    """The hash that chains a line to the one before: SHA-256 of that one's hash and of the line."""
    return hashlib.sha256(before + body).digest()


def frame(body: bytes, before: bytes) -> bytes:
    """An object of JSON as a whole line: one object still, with its length and its hash in front.

    >>> frame(b'{"round":0}', begin(b""))[:42]
    b'{"length":11,"chain":"f629268aa111fcd6c851'
    """
    return b'{"length":%d,"chain":"%s",%s\n' % (len(body), link(before, body).hex().encode(), body[1:])


def unframe(line: bytes, before: bytes) -> bytes:
    """The object that `frame` made a line of, given without its end; raises ValueError, which says what is wrong.

    >>> unframe(frame(b'{"round":0}', begin(b""))[:-1], begin(b""))
    b'{"round":0}'
    """
    head = _HEAD.match(line)
    if head is None:
        raise ValueError("it does not begin with its length and its hash")
    body = b"{" + line[head.end() :]
    if len(body) != int(head[1]):
        raise ValueError(f"it says that it is {int(head[1])} bytes long and is {len(body)}")
    if link(before, body).hex().encode() != head[2]:
        raise ValueError("its hash does not follow from it and from the lines before it")
    return body


def cut_short(tail: bytes) -> bool:
    """Whether what follows the last whole line is the beginning of one, as a crash in the middle of a write leaves it.

    A power cut may leave zeros in the place of what was not written yet.

    >>> cut_short(b'{"length":11,"chain":'), cut_short(b'{"round":0')
    (True, False)
    """
    written = tail.rstrip(b"\0")
    head = _HEAD.match(written)
    if head is None:
        return len(written) < 100 and written[: len(BEGINS)] == BEGINS[: len(written)]
    return len(written) - head.end() + 1 < int(head[1])
