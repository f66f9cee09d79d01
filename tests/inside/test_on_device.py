"""Noise made on a device: the published cipher, the right law, nothing from the host, and named where it is used."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from randomgen import ChaCha
from scipy import stats
from torch.utils._python_dispatch import TorchDispatchMode

from reticent import methods
from reticent.errors import SettingError
from reticent.inside import Randomness, on_device
from reticent.inside.lattice import BLOCK, Lattice
from reticent.inside.on_device import MOST, generator, grains, words
from reticent.methods.planning import plan

HERE = torch.device("cpu")

# RFC 8439, appendix A.1, test vectors 1 to 4: key, counter, the first 16 bytes
VECTORS = [
    (bytes(32), 0, "76b8e0ada0f13d90405d6ae55386bd28"),
    (bytes(32), 1, "9f07e7be5551387a98ba977c732d080d"),
    (bytes(31) + b"\x01", 1, "3aeb5224ecf849929b9d828db1ced4dd"),
    (b"\x00\xff" + bytes(30), 2, "72d54dfbf12ec44b362692df94137f32"),
]


@pytest.mark.parametrize(("key", "counter", "first"), VECTORS)
def test_published_vectors(key: bytes, counter: int, first: str) -> None:
    assert words(key, counter, 1, HERE).numpy().tobytes()[:16].hex() == first


@pytest.mark.parametrize("counter", [0, 7, 2**31 - 40])
def test_every_word_is_that_of_another_implementation(counter: int) -> None:
    key = bytes(range(32))
    theirs = ChaCha(key=np.frombuffer(key, np.uint64), counter=16 * counter, rounds=20)  # counted in words
    ours = words(key, counter, 40, HERE).T.contiguous().numpy().view(np.uint64).ravel()
    assert np.array_equal(ours, theirs.random_raw(40 * 8))


class Touched(TorchDispatchMode):
    """The devices of every tensor that an operation is given, and the operations themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, set[str], set[torch.dtype]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [part for part in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(part, torch.Tensor)]
        self.calls.append((str(func), {part.device.type for part in given}, {part.dtype for part in given}))
        return func(*args, **(kwargs or {}))


def test_nothing_comes_from_the_host_and_nothing_waits_for_the_device() -> None:
    """On a device without memory a number that is read, or copied from the host, would fail or be seen."""
    lattice = Lattice.of(sensitivity=1.0, std=1.0, size=3 * BLOCK)
    with Touched() as touched:
        out = lattice.noised_there(torch.empty(3 * BLOCK, device="meta"), Randomness.from_seed(0).at(0, "noise", 0))
    assert out.device.type == "meta"
    assert out.dtype == torch.float32
    assert {device for _, devices, _ in touched.calls for device in devices} == {"meta"}
    assert not [name for name, _, _ in touched.calls if "_local_scalar_dense" in name or "item" in name]


def test_the_cipher_is_whole_numbers_only() -> None:
    """So that every device gives the same words: additions, shifts and bits of 32-bit integers."""
    with Touched() as touched:
        words(bytes(32), 0, 8, HERE)
    assert {kind for _, _, kinds in touched.calls for kind in kinds} <= {torch.int32, torch.int64}


def test_any_part_can_be_made_alone() -> None:
    lattice = Lattice.of(sensitivity=1.0, std=1.0, size=3 * BLOCK + 5)
    place = Randomness.from_seed(0).at(4, "noise", 0)
    value = torch.randn(3 * BLOCK + 5, generator=torch.Generator().manual_seed(0))
    whole = lattice.noised_there(value, place)
    for block in (3, 1):
        part = slice(block * BLOCK, (block + 1) * BLOCK)
        assert torch.equal(lattice.noised_there(value[part], place.after(block)), whole[part])


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_the_value_is_left_alone(kind: torch.dtype) -> None:
    value = torch.ones(10, dtype=kind)
    Lattice.of(sensitivity=1.0, std=1.0, size=10).noised_there(value, Randomness.from_seed(0).at(0))
    assert torch.equal(value, torch.ones(10, dtype=kind))


def test_answers_of_many_parts_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    lattice, place = Lattice.of(sensitivity=1.0, std=1.0, size=5000), Randomness.from_seed(0).at(0)
    value = torch.zeros(5000)
    whole = lattice.noised_there(value, place)
    monkeypatch.setattr("reticent.inside.lattice.AT_ONCE", 1024)
    assert torch.equal(lattice.noised_there(value, place), whole)


def test_beyond_the_counter_is_refused() -> None:
    with pytest.raises(SettingError, match="at most"):
        grains(bytes(32), MOST - 4, 8, spread=1.0, bits=0, device=HERE)
    with pytest.raises(SettingError, match="multiple of 4"):
        grains(bytes(32), 2, 8, spread=1.0, bits=0, device=HERE)


MANY = 2_000_000


@pytest.fixture(scope="module")
def normals() -> np.ndarray:
    return (grains(bytes(range(32)), 0, MANY, spread=2.0**30, bits=0, device=HERE) / 2.0**30).numpy()


def test_normal_in_the_middle_and_in_the_tails(normals: np.ndarray) -> None:
    assert stats.kstest(normals, "norm").pvalue > 1e-9
    for beyond in (3.0, 4.0, 4.5):
        expected = 2 * stats.norm.sf(beyond) * MANY
        assert abs((np.abs(normals) > beyond).sum() - expected) < 6 * math.sqrt(expected) + 1


def test_neighbours_are_independent(normals: np.ndarray) -> None:
    for lag in (1, 2, 3, 4):
        for one, two in ((normals[lag:], normals[:-lag]), (normals[lag:] ** 2 - 1, normals[:-lag] ** 2 - 1)):
            assert abs((one * two).mean()) < 6 * float((one * two).std()) / math.sqrt(MANY)


def test_the_dither_is_uniform_and_the_normals_do_not_depend_on_it() -> None:
    key, size = bytes(range(32)), 400_000
    plain, dithered = (grains(key, 0, size, spread=2.0**20, bits=bits, device=HERE) for bits in (0, 10))
    part = (dithered - plain).long()
    assert int(part.min()) == -512
    assert int(part.max()) == 511
    assert stats.chisquare(torch.bincount(part + 512).numpy()).pvalue > 1e-9


def test_the_smallest_and_largest_words_give_finite_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The furthest normal is beyond 11.5 deviations, and none is infinite or NaN."""
    for word, radius in ((-(2**31), math.sqrt(-2 * math.log(0.5 * 2.0**-96))), (2**31 - 1, 0.0)):
        monkeypatch.setattr(on_device, "words", lambda *_, word=word: torch.full((16, 1), word, dtype=torch.int32))
        noise = grains(bytes(32), 0, 4, spread=1.0, bits=0, device=HERE)
        assert torch.isfinite(noise).all()
        assert float(noise.abs().max()) == round(radius)


def test_the_guarantee_names_it() -> None:
    cuda = torch.device("cuda")
    promised = plan(methods.get("dpsgd", noise_multiplier=1.0), size=1000, batch_size=100, rounds=10, delta=1e-5)
    said = promised.guarantee(seeded=False, generator=generator(cuda)).assumptions
    assert any("ChaCha20" in line and "AES-128" in line for line in said)
    assert not any("ChaCha20" in line for line in promised.guarantee(seeded=False).assumptions)
    assert generator(torch.device("mps")) == generator(HERE), "no float64 there: the noise is made here and copied"
