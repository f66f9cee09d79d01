"""Fast checks of where the noise comes from and where it lies; each mutant beside this file makes one of them fail."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import torch
from randomgen import AESCounter
from torch import nn

from reticent.accounting import Gaussian, Ledger, Planned
from reticent.errors import ReticentError
from reticent.gradients.forms.outer import Outer
from reticent.inside import Everyone, GaussianNoise, Randomness, RoundSettings, Sealed, Vault, as_store
from reticent.inside import lattice as lattices
from reticent.inside.kept import LEAST, Pages
from reticent.inside.lattice import BLOCK, Lattice, _scratch
from reticent.inside.normals import _radii
from reticent.methods import Method, disk, dpsgd, dpsur
from reticent.run import Run


def opened(value: torch.Tensor, place: int = 0) -> torch.Tensor:
    """What the door makes of a value: the real mechanism with the real streams."""
    sealed = Sealed(value, 1.0, Everyone().draw(RoundSettings(10, 10, 1.0, 1.0), 10, np.random.default_rng(0), {}))
    return GaussianNoise(1.0)._open(sealed, Randomness.from_seed(0).at(place, "noise", 0))


def no_digit_is_left_below_the_noise() -> None:
    """Whatever the value, answers are whole grains; values that round alike give the same answer, bit for bit."""
    grain = Lattice.of(sensitivity=1.0, std=1.0, size=1000).grain
    value = torch.randn(1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 100
    answer = opened(value) / grain
    assert torch.equal(answer, answer.round())
    near = ((value / grain).round() + 0.4) * grain
    assert torch.equal(opened(near), opened(near - 0.8 * grain))


def noise_makes_up_for_rounding() -> None:
    """The furthest that rounding lets two sums apart, over the noise, is no more than was charged."""
    for size, noise in ((1, 1.0), (1000, 0.5), (10**6, 4.0), (100, 1e6)):
        lattice = Lattice.of(sensitivity=1.0, std=noise, size=size)
        moved = 1.0 + lattice.grain * math.sqrt(size)
        assert moved / (lattice.spread * lattice.grain) <= (1 + 1e-12) / noise


def streams_cannot_be_computed_back() -> None:
    """Every stream is AES under a key of its own."""
    stream = Randomness.from_seed(0).stream(1, "noise", 2, 3)
    assert isinstance(stream.bit_generator, AESCounter)
    again = AESCounter(key=0, counter=0)
    again.state = stream.bit_generator.state
    words, made = again.random_raw(500), np.empty(500, np.uint64)
    assert np.array_equal(stream.bit_generator.random_raw(500), words)
    Randomness.from_seed(0).fill(made, 1, "noise", 2, 3)
    assert np.array_equal(made, words), "noise is of another generator"


def blocks_have_noise_of_their_own() -> None:
    """No two blocks of an answer, nor two answers, share noise."""
    nothing = torch.zeros(3 * BLOCK, dtype=torch.float64)
    parts = torch.cat([opened(nothing), opened(nothing, place=1)]).reshape(6, BLOCK)
    apart = torch.corrcoef(parts) - torch.eye(6)
    assert apart.abs().max() < 6 / math.sqrt(BLOCK)


def noise_does_not_depend_on_the_threads() -> None:
    """One thread or three make the same noise, each block from its own stream in memory of its own."""
    nothing, threads = torch.zeros(5 * BLOCK + 7, dtype=torch.float64), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = opened(nothing)
        torch.set_num_threads(3)
        assert torch.equal(opened(nothing), alone)
    finally:
        torch.set_num_threads(threads)
    assert (alone[-7:] != 0).all(), "the last block has no noise"


def threads_have_memory_of_their_own() -> None:
    """Two threads that are there at the same time work on nothing in common, whoever of them is quicker."""
    both = Barrier(2)

    def buffers(_: int) -> tuple[np.ndarray, ...]:
        both.wait(timeout=60)
        return tuple(lattices._scratch(BLOCK))

    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(buffers, range(2))
    assert not any(np.shares_memory(mine, yours) for mine, yours in zip(one, two, strict=True))


def pairs_and_parts_are_independent() -> None:
    """The numbers of a pair, their sizes, their neighbours and the uniform part have nothing in common."""
    lattice = Lattice.of(sensitivity=1.0, std=1.0, size=BLOCK)
    words, scratch, noise = _scratch(BLOCK)
    Randomness.from_seed(0).at(0, "noise", 0).fill(0, words)
    given = words.copy()
    dataclasses.replace(lattice, bits=0)._noise(words, scratch, noise)
    normal = torch.from_numpy(noise.copy())
    words[:] = given
    lattice._noise(words, scratch, noise)
    part = torch.from_numpy(noise) - normal
    half = BLOCK // 2
    one, two, (low, high) = normal[:half], normal[half:], part.view(-1, 2).T  # the order in which words are halved
    rows = [one, two, one.roll(1), part[:half], low, high, one.abs(), two.abs(), part[:half].abs(), high.abs()]
    angle = torch.atan2(two, one)
    apart = torch.corrcoef(torch.stack(rows)) - torch.eye(10)
    turned = torch.corrcoef(torch.stack([angle, one**2 + two**2, low, high])) - torch.eye(4)
    assert turned.abs().max() < 6 / math.sqrt(half)
    assert apart.abs().max() < 6 / math.sqrt(half)
    assert part.abs().max() <= 2 ** (lattice.bits - 1)
    assert part.std() > 0.2 * 2**lattice.bits
    assert abs(float((normal / lattice.spread).std()) - 1) < 6 / math.sqrt(BLOCK)


def small_words_go_on_in_others() -> None:
    """The tail has digits of its own: words that begin alike give radii that differ, and none is endless."""
    radii = np.empty(4)
    _radii(np.array([0, 0, 5, 5]), np.arange(1, 5, dtype=np.uint64) << np.uint64(61), 1.0, radii)
    assert np.isfinite(radii).all()
    assert len(np.unique(radii)) == 4


def noise_of_a_device_is_of_each_place() -> None:
    """Noise made on a device: no two places, parts or pairs share it, and it lies on the lattice."""
    lattice = Lattice.of(sensitivity=1.0, std=1.0, size=2 * BLOCK)
    nothing, randomness = torch.zeros(BLOCK, dtype=torch.float64), Randomness.from_seed(0)
    places = [randomness.at(place, "noise", 0) for place in (0, 1)]
    parts = [lattice.noised_there(nothing, place.after(block)) for place in places for block in (0, 1)]
    halves = torch.cat([torch.stack([part[::2], part[1::2]]) for part in parts])
    apart = torch.corrcoef(torch.cat([halves, halves.abs()])) - torch.eye(16)
    assert apart.abs().max() < 6 / math.sqrt(BLOCK / 2)
    points = torch.stack(parts) / lattice.grain
    assert torch.equal(points, points.round())
    assert len(points.unique()) > 0.99 * points.numel()


def noise_makes_up_for_float32() -> None:
    """The noise on a sum of many float32 gradients is larger by what their rounding may add."""

    class Sum:
        sensitivity = 1.0
        summed_in = torch.float32

        def answer(self, _drawn: object) -> torch.Tensor:
            return torch.zeros(1)

    room = Vault(
        as_store((torch.zeros(2048, 1),)),
        randomness=Randomness.from_seed(0),
        ledger=Ledger(),
        allowance=Planned([Gaussian(1.0)]),
    )
    found = room.ask(Sum(), room.draw(Everyone(), RoundSettings(2048, 2048, 1.0, 1.0))).slack
    assert found >= 1 + 2 * 9 * 2048 * 2.0**-24


def short_factors_are_measured() -> None:
    """A gradient whose factors are too short or too long to be squared is as long as it is, and weighs what it may."""
    rng = torch.Generator().manual_seed(0)
    for positions in (1, 2):
        right = torch.randn(1, positions, 20, generator=rng)
        right *= 1e19 / right.norm()
        for outgoing, weight in ((1e-23, 1e-3), (1e-9, 2.2e-36)):
            left = torch.full((1, positions, 10), outgoing)
            true = float((left.double().mT @ right.double()).norm())
            squared, form = Outer(left, right).measure()
            assert float(squared.sqrt()) >= true * (1 - 1e-6), "it is longer than it seems"
            form.add_to(total := torch.zeros(10, 20), torch.tensor([weight]))
            assert total.double().norm() <= weight * true * (1 + 1e-6), "it weighs more than it may"


class InHalfError(ReticentError):
    """What a caller's autocast has made of a sum, raised before any is taken."""


def sums_are_exact_whatever_the_caller_has_on() -> None:
    """A caller's autocast and short products reach neither losses nor sums: in half precision bounds do not hold."""

    def loss(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        if torch.is_autocast_enabled("cpu") or torch.get_float32_matmul_precision() != "highest":
            raise InHalfError("the caller's precision is that of the loss")
        return nn.functional.cross_entropy(model(batch[0]), batch[1], reduction="none")

    def weights(*, autocast: bool = False, products: str = "highest") -> torch.Tensor:
        torch.manual_seed(0)
        model, x = nn.Linear(3, 2), torch.randn(20, 3)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.set_float32_matmul_precision(products)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            said = {"batch_size": 10, "rounds": 2, "seed": 0, "loss": loss}
            list(Run(model, sgd, (x, torch.zeros(20, dtype=torch.long)), method=dpsgd(noise_multiplier=1.0), **said))  # type: ignore[arg-type]
        return model.weight.detach()

    try:
        found = [weights(autocast=True), weights(products="medium")]
        assert torch.get_float32_matmul_precision() == "medium", "it was not put back"
    except InHalfError as error:
        raise AssertionError("a loss was asked for in half precision") from error
    finally:
        torch.set_float32_matmul_precision("highest")
    assert all(torch.equal(one, weights()) for one in found)


def memory_in_use_is_not_given_again() -> None:
    """Vectors that somebody holds, in whole or in part, stay what they are; and rounds are the same, kept or not."""
    kept, vector = Pages(least=0), torch.zeros(1000)
    held = [kept.like(vector).fill_(number).view(10, 100)[number % 10] for number in range(5)]
    assert [float(one.mean()) for one in held] == [0.0, 1.0, 2.0, 3.0, 4.0], "a vector was overwritten"
    for method in (dpsgd(noise_multiplier=1.0), disk(noise_multiplier=1.0), dpsur(noise_multiplier=1.0)):
        found = []
        for least in (0, LEAST):
            run = _small_run(method)
            run._task.flat.kept = Pages(least=least)
            probe = run.watch()
            for _ in range(4):
                run.step()
            found.append([*(one.sealed for one in probe.openings), run._task.flat.vector])
        assert all(map(torch.equal, *found)), "a sum was overwritten while it was in use"


def _small_run(method: Method) -> Run:
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(40, 3)
    sgd = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    return Run(model, sgd, (x, torch.arange(40) % 2), method=method, batch_size=10, rounds=4, delta=1e-5, seed=0)


CHECKS: list[Callable[[], None]] = [
    sums_are_exact_whatever_the_caller_has_on,
    no_digit_is_left_below_the_noise,
    noise_makes_up_for_rounding,
    streams_cannot_be_computed_back,
    blocks_have_noise_of_their_own,
    noise_does_not_depend_on_the_threads,
    threads_have_memory_of_their_own,
    pairs_and_parts_are_independent,
    small_words_go_on_in_others,
    noise_of_a_device_is_of_each_place,
    noise_makes_up_for_float32,
    short_factors_are_measured,
    memory_in_use_is_not_given_again,
]
