"""Noise made where the answer lies: ChaCha20 in integer arithmetic and normals by Box and Muller, nothing copied.

Integers are the same on every device; the argument for the law is in docs/accounting.md, "Noise on a lattice".
"""

from __future__ import annotations

import math
import struct

import torch
from torch import Tensor

from reticent.errors import require
from reticent.inside.randomness import GENERATOR as ON_PROCESSOR

MADE_THERE = ("cuda", "xpu")
"""Devices with float64; elsewhere noise is made by AES on the processor and copied."""

GENERATOR = (
    "noise on an accelerator is ChaCha20, keyed with BLAKE2b for each place and made there: whoever can read the "
    "accelerator's memory while it runs is not kept from it"
)
"""What a guarantee rests on besides, where noise is made so."""

PER_BLOCK = 4
"""Numbers from one block of 16 words: two pairs of 3 words for the radius, 2 for the angle, 1 each for the dither."""

MOST = PER_BLOCK * 2**31
"""Numbers under one key: the counter has 31 bits here."""

_CONSTANTS = struct.unpack("<4i", b"expand 32-byte k")
_DOUBLE_ROUNDS = 10
_WORD = 2.0**-32


def made_there(device: torch.device) -> bool:
    """Whether noise for an answer on this device is made on it.

    >>> made_there(torch.device("cpu")), made_there(torch.device("cuda"))
    (False, True)
    """
    return device.type in MADE_THERE


def generator(device: torch.device) -> str:
    """What makes the secret randomness of a run whose model is on this device.

    >>> generator(torch.device("cpu"))[:37], "ChaCha20" in generator(torch.device("cuda"))
    ('secret randomness is AES-128 in count', True)
    """
    return f"{ON_PROCESSOR}; {GENERATOR}" if made_there(device) else ON_PROCESSOR


def words(key: bytes, first: int, blocks: int, device: torch.device) -> Tensor:
    """ChaCha20 (RFC 8439, nonce 0): 16 words for each of so many counters from `first` on, one column a block.

    >>> words(bytes(32), 0, 1, torch.device("cpu"))[0, 0].item().to_bytes(4, "little", signed=True).hex()
    '76b8e0ad'
    """
    secret = struct.unpack("<8i", key)
    counter = torch.arange(first, first + blocks, device=device, dtype=torch.int64).to(torch.int32)
    nothing = torch.zeros_like(counter)
    start = [
        torch.stack([torch.full_like(counter, word) for word in part]) for part in (_CONSTANTS, secret[:4], secret[4:])
    ]
    start.append(torch.stack([counter, nothing, nothing, nothing]))
    a, b, c, d = (part.clone() for part in start)
    for _ in range(_DOUBLE_ROUNDS):
        _quarter_rounds(a, b, c, d)  # columns
        b, c, d = b.roll(-1, 0), c.roll(-2, 0), d.roll(-3, 0)
        _quarter_rounds(a, b, c, d)  # diagonals
        b, c, d = b.roll(1, 0), c.roll(2, 0), d.roll(3, 0)
    return torch.cat([part.add_(begun) for part, begun in zip((a, b, c, d), start, strict=True)])


def grains(key: bytes, first: int, size: int, *, spread: float, bits: int, device: torch.device) -> Tensor:
    """Whole grains of noise for the numbers from `first` on (a multiple of 4): rounded normals and a uniform part."""
    require(first % PER_BLOCK == 0, f"noise begins at a multiple of {PER_BLOCK}, not at {first}")
    require(first + size <= MOST, f"at most {MOST} numbers have noise from one key")
    drawn = words(key, first // PER_BLOCK, -(-size // PER_BLOCK), device).view(2, 8, -1)
    radius = (((_unit(drawn[:, 2]) + 0.5 * _WORD) * _WORD + _unit(drawn[:, 1])) * _WORD + _unit(drawn[:, 0])).log_()
    radius = radius.mul_(-2.0).sqrt_()
    angle = (_unit(drawn[:, 4]) * _WORD + _unit(drawn[:, 3])).mul_(2 * math.pi)
    normal = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
    noise = normal.mul_(spread).round_()
    if bits:
        noise += drawn[:, 5:7] >> (32 - bits)
    return noise.permute(2, 0, 1).reshape(-1)[:size]


def _unit(word: Tensor) -> Tensor:
    """32 bits as a number from 0 up to, not including, 1."""
    return (word.double() + 2.0**31) * _WORD


def _quarter_rounds(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> None:
    """Four at once, in place; additions of 32-bit integers wrap around."""
    for one, two, three, shift in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        one += two
        three ^= one
        high = three << shift
        three >>= 32 - shift
        three &= (1 << shift) - 1
        three |= high
