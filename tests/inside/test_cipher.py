"""Words in bulk: those of AES by every way there is, whatever the length and the counter."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from reticent.inside import cipher

SECRETS = [
    bytes(32),
    hashlib.blake2b(b"any", digest_size=32).digest(),
    bytes(16) + b"\xff" * 8 + bytes(8),  # the lower half of the counter is carried at once
    bytes(16) + (2**64 - 70_000).to_bytes(8, "little") + b"\xff" * 8,
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("size", [1, 2, 3, 64, 2 * cipher._AT_ONCE, 2 * cipher._AT_ONCE + 1, 98_368])
def test_both_ways_give_the_same_words(secret: bytes, size: int) -> None:
    found, expected = np.zeros(size + 1, np.uint64), np.zeros(size + 1, np.uint64)
    cipher.fill(found[:size], secret)
    cipher.by_generator(expected[:size], secret)
    assert np.array_equal(found, expected), "or it wrote beyond the end"


def test_without_the_library_the_words_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [np.empty(1001, np.uint64) for _ in range(2)]
    cipher.fill(made[0], SECRETS[1])
    monkeypatch.setattr(cipher, "_openssl", lambda: None)
    cipher.fill(made[1], SECRETS[1])
    assert np.array_equal(*made)


def test_memory_in_pieces_is_filled() -> None:
    scattered, whole = np.zeros(20, np.uint64), np.empty(10, np.uint64)
    cipher.fill(scattered[::2], SECRETS[1])
    cipher.fill(whole, SECRETS[1])
    assert np.array_equal(scattered[::2], whole)
    assert not scattered[1::2].any()


def test_the_library_is_used_where_it_is() -> None:
    """Nothing but speed hangs on it, so where Python has none this says so and goes on."""
    if cipher._openssl() is None:
        pytest.skip("this Python has no OpenSSL that can be called")
    out = np.empty(2, np.uint64)
    cipher._openssl()(out, bytes(range(16)) + bytes.fromhex("00112233445566778899aabbccddeeff"))
    assert out.tobytes().hex() == "69c4e0d86a7b0430d8cdb78070b4c55a", "FIPS-197, appendix C.1"


def test_a_library_without_memory_makes_no_noise() -> None:
    with pytest.raises(MemoryError, match="no noise"):
        cipher._Context(lambda: 0, lambda _address: None)
