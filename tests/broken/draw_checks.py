"""Checks of draws: what is charged for a draw covers what is drawn, and who is drawn depends on nobody else."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from reticent.accounting import Event, Gaussian, Laplace, Subsampled, epsilon, price
from reticent.inside import BallsInBins, Capped, OfFixedSize, Poisson, RoundSettings
from reticent.inside.draws import Draw

TRIALS, NOISE = 3000, 1.0
GRID = np.linspace(-12.0, 12.0, 4001)


def _law(sampler: Any, settings: RoundSettings, population: int) -> dict[tuple[int, ...], float]:
    """How often each set was drawn."""
    rng = np.random.default_rng(5)
    drawn = Counter(tuple(sampler.draw(settings, population, rng, {})._index.tolist()) for _ in range(TRIALS))
    return {who: count / TRIALS for who, count in drawn.items()}


def _density(law: dict[tuple[int, ...], float], given: list[float]) -> np.ndarray:
    """Of the noisy sum of what those drawn give."""
    centres = Counter[float]()
    for who, chance in law.items():
        centres[sum(given[one] for one in who)] += chance
    parts = [chance * np.exp(-((GRID - centre) ** 2) / 2 / NOISE**2) for centre, chance in centres.items()]
    return np.asarray(sum(parts)) / (NOISE * math.sqrt(2 * math.pi))


def _covers(event: Event, one: np.ndarray, other: np.ndarray, adjacency: Any) -> bool:
    """Whether no hockey stick between two densities, in either direction, is longer than the price says."""
    for first, second in ((one, other), (other, one)):
        for eps in (0.2, 0.5, 1.0, 1.5):
            told = float(np.trapezoid(np.maximum(first - math.exp(eps) * second, 0.0), GRID)) - 1e-3
            if told > 1e-4 and epsilon([event], told, adjacency=adjacency) < eps * 0.99:
                return False
    return True


def a_draw_tells_no_more_than_is_charged() -> None:
    """The others pull one way and the example the other: who is pushed out by it counts as well."""
    now = RoundSettings(4, 2, 1.0, NOISE)
    for sampler in (Poisson(), OfFixedSize(), Capped(most=2), Capped(most=1)):
        event = sampler.amplify(Gaussian(NOISE), now)
        for population in (4, 3):
            law = _law(sampler, now, population)
            others = [-1.0] * (population - 1)
            mine, nothing, exchanged = (_density(law, [given, *others]) for given in (1.0, 0.0, -1.0))
            assert _covers(event, mine, nothing, "zero-out"), f"{sampler} tells of an example more than {event}"
            assert _covers(event, mine, exchanged, "replace"), f"{sampler} tells of an exchange more than {event}"


def one_more_tells_no_more_than_is_charged() -> None:
    """With fewer, as many and more examples than were declared."""
    now = RoundSettings(4, 2, 1.0, NOISE)
    for sampler in (Poisson(), OfFixedSize()):
        event = sampler.amplify(Gaussian(NOISE), now)
        for population in (2, 3, 4, 5):
            more = _density(_law(sampler, now, population + 1), [*[-1.0] * population, 1.0])
            fewer = _density(_law(sampler, now, population), [-1.0] * population)
            assert _covers(event, more, fewer, "add-or-remove"), f"{sampler} tells of one more than {event} says"


def a_cap_has_no_price_where_the_number_of_examples_is_private() -> None:
    """How often a draw is cut short follows from how many there are."""
    event = Capped(most=5).amplify(Gaussian(1.0), RoundSettings(40, 5, 1.0, 1.0))
    for adjacency, finite in (("zero-out", True), ("replace", True), ("add-or-remove", False)):
        assert math.isfinite(price([event], 1e-5, adjacency=adjacency).epsilon) is finite  # type: ignore[arg-type]


def a_cap_is_charged() -> None:
    """About as dp-accounting charges it, which is a little looser, and far more than for a draw without one."""
    from dp_accounting import dp_event
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    now = RoundSettings(1000, 50, 1.0, 2.0)
    for most in (50, 64):
        said = PLDAccountant(value_discretization_interval=1e-3)
        said.compose(dp_event.TruncatedSubsampledGaussianDpEvent(1000, 0.05, most, 2.0), 300)
        found = epsilon({Capped(most=most).amplify(Gaussian(2.0), now): 300}, 1e-5)
        assert 0.75 * said.get_epsilon(1e-5) <= found <= 1.001 * said.get_epsilon(1e-5)


def each_falls_into_one_bin_of_every_epoch_anew() -> None:
    """Exactly once in an epoch, in each of its rounds as often, whatever the epoch before and whoever else."""
    bins, epochs, people = 4, 2000, 3
    sampler, rng, memory = BallsInBins(), np.random.default_rng(3), dict[str, Any]()
    took = np.zeros((epochs * bins, people))
    for number in range(len(took)):
        draw: Draw = sampler.draw(RoundSettings(12, 3, 1.0, 1.0, number), people, rng, memory)
        took[number, draw._index] = 1
    by_epoch = took.reshape(epochs, bins, people)
    assert (by_epoch.sum(axis=1) == 1).all(), "an example was drawn twice in an epoch, or not at all"
    assert np.abs(by_epoch.mean(axis=0) - 1 / bins).max() < 0.05, "some rounds draw more than others"
    where = by_epoch.argmax(axis=1)
    same_again = (where[1:] == where[:-1]).mean()
    assert abs(same_again - 1 / bins) < 0.05, "an example's bin follows from the last epoch's"
    assert abs((where[:, 0] == where[:, 1]).mean() - 1 / bins) < 0.05, "an example's bin follows from another's"


def an_epoch_is_charged_for_every_beginning() -> None:
    """As often as bin 0 had its turn, each time as the worst pair of an epoch, and for normal noise alone."""
    sampler = BallsInBins()
    for rounds, epochs in ((4, 1), (5, 2), (8, 2), (9, 3)):
        events = [sampler.amplify(Gaussian(1.0), RoundSettings(12, 3, 1.0, 1.0, number)) for number in range(rounds)]
        rng = np.random.default_rng(0)
        shifts = np.zeros((40_000, epochs, 4))
        for epoch in range(epochs):
            shifts[np.arange(len(shifts)), epoch, rng.integers(4, size=len(shifts))] = 1.0
        seen = shifts + rng.standard_normal(shifts.shape)
        loss = np.log(np.exp(seen - 0.5).mean(axis=2)).sum(axis=1)
        for eps in (0.5, 1.0, 2.0):
            told = float(np.maximum(-np.expm1(eps - loss), 0.0).mean()) - 0.01
            assert told < 1e-3 or epsilon(events[: 4 * epochs], told) >= eps, "an epoch tells more than is charged"
        assert epsilon(events, 1e-5) == epsilon(events[: 4 * (epochs - 1) + 1], 1e-5)
    assert math.isinf(epsilon([sampler.amplify(Laplace(1.0), RoundSettings(12, 3, 1.0, 1.0))], 1e-5))
    assert sampler.amplify(Gaussian(1.0), RoundSettings(12, 12, 1.0, 1.0)) == Gaussian(1.0)
    assert Poisson().amplify(Gaussian(1.0), RoundSettings(12, 3, 1.0, 1.0)) == Subsampled(0.25, Gaussian(1.0))


CHECKS: list[Callable[[], None]] = [
    a_draw_tells_no_more_than_is_charged,
    one_more_tells_no_more_than_is_charged,
    a_cap_is_charged,
    a_cap_has_no_price_where_the_number_of_examples_is_private,
    each_falls_into_one_bin_of_every_epoch_anew,
    an_epoch_is_charged_for_every_beginning,
]
