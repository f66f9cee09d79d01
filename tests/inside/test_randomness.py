"""Randomness: the same place, the same stream; another place, another one; no seed, no repetition."""

import copy
import hashlib
import os
import pickle
from collections.abc import Callable

import numpy as np
import pytest
import torch
from randomgen import AESCounter
from tests import quick
from torch import Tensor, nn

import reticent as rt
from reticent.errors import SettingError
from reticent.inside import Randomness

ZERO = bytes(16)


def raw(generator: AESCounter, blocks: int = 1) -> str:
    return np.asarray(generator.random_raw(2 * blocks), "<u8").tobytes().hex()


@pytest.mark.parametrize("hardware", [True, False])
@pytest.mark.parametrize(
    ("key", "counter", "published"),
    [
        (ZERO, ZERO, "66e94bd4ef8a2c3b884cfa59ca342b2e"),
        # FIPS-197, appendix C.1
        (bytes(range(16)), bytes.fromhex("00112233445566778899aabbccddeeff"), "69c4e0d86a7b0430d8cdb78070b4c55a"),
        # NIST SP 800-38A, F.1.1: the first two blocks
        (
            bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"),
            bytes.fromhex("6bc1bee22e409f96e93d7e117393172a"),
            "3ad77bb40d7a3660a89ecaf32466ef97",
        ),
        (
            bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"),
            bytes.fromhex("ae2d8a571e03ac9c9eb76fac45af8e51"),
            "f5d3d58503b9699de785895a96fdbaaf",
        ),
    ],
)
def test_the_generator_is_aes_128(key: bytes, counter: bytes, published: str, hardware: bool) -> None:
    """The name in the guarantee is true: published vectors, with the processor's instructions and without."""
    start = int.from_bytes(counter, "little")
    made = AESCounter(key=int.from_bytes(key, "little"), counter=(start - 64) % 2**128)
    if not hardware:
        made.use_aesni = False
    made.random_raw(2 * 64)  # past what was made before the switch
    assert raw(made) == published


def test_blocks_count_up_and_no_block_comes_twice() -> None:
    for start in (0, 2**64 - 1, 2**128 - 1):
        whole = raw(AESCounter(key=5, counter=start), 40)
        for block in (1, 17, 39):
            assert raw(AESCounter(key=5, counter=(start + block) % 2**128)) == whole[32 * block : 32 * (block + 1)]


def test_a_place_has_the_key_and_counter_that_are_documented() -> None:
    """Whoever holds the 256 bits can make every stream with any AES; whoever lacks one of them can make none."""
    randomness = Randomness.from_seed(3)
    digest = hashlib.blake2b(b"(1, 'noise', 0, 2)", key=randomness.state()["key"], digest_size=32).digest()
    assert len(randomness.state()["key"]) == 32
    expected = AESCounter(
        key=int.from_bytes(digest[:16], "little"), counter=int.from_bytes(digest[16:], "little")
    ).random_raw(100)
    stream = randomness.stream(1, "noise", 0, 2)
    assert isinstance(stream.bit_generator, AESCounter)
    assert np.array_equal(stream.bit_generator.random_raw(100), expected)


def test_same_place_same_stream_and_other_places_differ() -> None:
    randomness = Randomness.from_seed(3)
    here = randomness.stream(1, "noise", 0).standard_normal(8)
    assert np.array_equal(here, Randomness.from_seed(3).stream(1, "noise", 0).standard_normal(8))
    for place in [(1, "noise", 1), (2, "noise", 0), (1, "draw", 0), (11, "noise", 0)]:
        assert not np.allclose(here, randomness.stream(*place).standard_normal(8))


def test_streams_of_neighbouring_rounds_are_uncorrelated() -> None:
    randomness = Randomness.from_seed(0)
    streams = np.stack([randomness.stream(number, "noise", 0).standard_normal(4000) for number in range(40)])
    off = np.corrcoef(streams)[~np.eye(40, dtype=bool)]
    assert abs(off).max() < 5 / np.sqrt(4000)


def test_fresh_coins_differ_each_time() -> None:
    assert Randomness.fresh().stream(0).random() != Randomness.fresh().stream(0).random()


def test_seal_depends_on_key_and_bytes() -> None:
    one, two = Randomness.from_seed(1), Randomness.from_seed(2)
    assert one.seal(b"abc") == one.seal(b"a", b"bc") != one.seal(b"abd")
    assert one.seal(b"abc") != two.seal(b"abc")


@pytest.mark.parametrize("seed", [-1, 1.5, True, "7"])
def test_bad_seeds_are_refused(seed: object) -> None:
    with pytest.raises(SettingError, match="whole number"):
        Randomness.from_seed(seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_key_is_not_copied(duplicate: Callable[[object], object]) -> None:
    with pytest.raises(SettingError, match="Start a new run"):
        duplicate(Randomness.fresh())


def test_a_run_is_not_copied(blobs: tuple[Tensor, Tensor]) -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = rt.Run(model, optimizer, blobs, method=rt.methods.dpsgd(noise_multiplier=1.0), batch_size=10, rounds=2)
    with pytest.raises(SettingError, match="Start a new run"):
        copy.deepcopy(run)
    run.step()


def test_a_key_is_not_shown() -> None:
    randomness = Randomness.fresh()
    assert randomness.state()["key"].hex() not in repr(randomness)
    assert repr(randomness) == "Randomness(seeded=False)"


FORK = """
import os
from reticent.errors import SettingError
from reticent.inside import Randomness

randomness = Randomness.fresh()
key = randomness.state()["key"]
child = os.fork()
if child == 0:
    refused = 0
    for use in (lambda: randomness.stream(0), lambda: randomness.seal(b""), randomness.state):
        try:
            use()
        except SettingError as error:
            refused += "Start a new run" in str(error)
    own = Randomness.fresh().stream(0).random() >= 0
    os._exit(0 if refused == 3 and randomness._key is None and own else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert randomness.state()["key"] == key
"""


def test_a_forked_process_has_forgotten_the_key() -> None:
    done = quick.run(FORK)
    assert done.returncode == 0, done.stderr


def test_a_key_that_reached_another_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the child was not made by Python, and nothing was told of it."""
    randomness = Randomness.fresh()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(SettingError, match="belongs to process"):
        randomness.stream(0)
