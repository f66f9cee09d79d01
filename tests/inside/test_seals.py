"""Seals of long answers made on their device: another for any other bit, the same on any number of ranks."""

import numpy as np
import pytest
import torch

from reticent.inside import seals
from reticent.inside.digests import BYTES, SUMS, Digests
from reticent.inside.on_device import words
from reticent.inside.randomness import Randomness
from reticent.inside.ranks import ALONE, BLOCK
from reticent.inside.seals import Seals

KEY = bytes(range(32))


@pytest.fixture
def there(monkeypatch):
    monkeypatch.setattr(seals, "made_there", lambda _device: True)


def seal(value, seed=7):
    return Seals(Randomness.from_seed(seed), ALONE).of(value)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_any_other_bit_is_another_seal(there, kind):
    value = torch.randn(2 * BLOCK + 77, dtype=kind)
    rng, found = np.random.default_rng(0), {seal(value)}
    bits = value.element_size() * 8
    for _ in range(20):
        other = value.clone()
        whole = other.view(torch.int32 if bits == 32 else torch.int64)
        whole[rng.integers(len(value))] ^= 1 << int(rng.integers(bits - 1))
        found.add(seal(other))
    swapped = value.clone()
    swapped[[3, BLOCK + 3]] = value[[BLOCK + 3, 3]]
    found |= {seal(swapped), seal(value.roll(1)), seal(value.roll(BLOCK)), seal(value, seed=8)}
    assert len(found) == 25
    assert seal(value.clone()) == seal(value)


@pytest.mark.parametrize("before", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_every_number_is_sealed_after_answers_of_another_type(there, before, kind):
    made, value = Seals(Randomness.from_seed(7), ALONE), torch.randn(3 * BLOCK + 5, dtype=kind)
    made.of(torch.randn(BLOCK + 1, dtype=before))
    found = {made.of(value)}
    for place in (0, BLOCK, 2 * BLOCK, 3 * BLOCK, 3 * BLOCK + 4):
        other = value.clone()
        other[place] += 1
        found.add(made.of(other))
    assert len(found) == 6
    assert made.of(value) == seal(value), "whatever was sealed before"


def test_a_digest_is_the_upper_half_of_sums_modulo_two_to_the_64(there):
    """The same by Python's own integers, for one block."""
    value = torch.randn(BLOCK)
    drawn = [int(word) for word in words(KEY, 0, 2 * SUMS * (BLOCK + 1) // 16 + 1, value.device).T.reshape(-1)]
    rows = [drawn[at : at + BLOCK + 1] for at in range(0, 2 * SUMS * (BLOCK + 1), BLOCK + 1)]
    said = [int(word) % 2**32 for word in value.view(torch.int32)]
    [found] = Digests(KEY, value).of(value)
    for high, low, four in zip(rows[:SUMS], rows[SUMS:], range(0, BYTES, 4), strict=True):
        secret = [(one << 32) ^ (other % 2**32) for one, other in zip(high, low, strict=True)]
        total = (sum(a * m for a, m in zip(secret, said, strict=False)) + secret[-1]) % 2**64
        assert int.from_bytes(found[four : four + 4], "little") == total >> 32


def test_only_digests_come_to_the_host(there, monkeypatch):
    taken, right = [], torch.Tensor.numpy
    monkeypatch.setattr(torch.Tensor, "numpy", lambda self, *args: taken.append(self.nbytes) or right(self, *args))
    seal(torch.randn(3 * BLOCK))
    assert taken == [3 * BYTES]


def test_short_answers_are_sealed_as_everywhere(there):
    value = torch.randn(10)
    assert seal(value) == Randomness.from_seed(7).seal(value.numpy().tobytes())
