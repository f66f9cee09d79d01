"""What a budget affords a method: the least noise, the most rounds, the largest batch, all by one tally of events."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from reticent.accounting import Budget, Event, calibrate, price
from reticent.errors import PrivacyWarning, SettingError
from reticent.inside import BallsInBins, Buffers, Cyclic, MixedSum, PartsInTurn, Restricted, RoundSettings, StreamNoise
from reticent.methods.method import Method
from reticent.outside import Open, Steady, Unmixed


def tally(method: Method, settings: RoundSettings, rounds: int, already: Iterable[Event] = ()) -> dict[Event, int]:
    """How often each event is written in so many rounds of a method, after what was written already.

    >>> tally(Method(name="mine"), RoundSettings(10, 5, 1.0, 2.0), 3)
    {Subsampled(rate=0.5, inner=Gaussian(noise_multiplier=2.0)): 3}
    """
    found: Counter[Event] = Counter(already)
    if rounds and type(method.control) is Steady and type(method.gate) is Open and not _in_turns(method):  # all alike
        found.update(dict.fromkeys(method.charge(settings).events, rounds))
        return dict(found)
    for number in range(rounds):
        found.update(method.charge(method.turned(settings, number)).events)
    return dict(found)


def _in_turns(method: Method) -> bool:
    """Whether rounds differ in who may be drawn."""
    return isinstance(method.sampler, Cyclic | BallsInBins | PartsInTurn)


def for_rounds(method: Method, size: int, batch_size: float, rounds: int) -> Method:
    """The method with the matrix by which it mixes its sums, if it does, made for so many rounds.

    >>> from reticent.methods.papers.band_mf import band_mf
    >>> for_rounds(band_mf(bands=2), 1000, 10, 50).query
    MixedSum(mixing=Bands(bands=2, matrix='optimised', momentum=0.0, rounds=50))
    """
    if not isinstance(method.query, MixedSum):
        return method
    mixing = method.query.mixing.planned(size, batch_size, rounds)
    made = replace(method, query=MixedSum(mixing), direction=Unmixed(mixing))
    if isinstance(made.sampler, PartsInTurn) and isinstance(mixing, Buffers):
        made = replace(made, sampler=PartsInTurn(mixing))
    if isinstance(made.noise, StreamNoise):
        made = replace(made, noise=StreamNoise(mixing))
    return made


def rounds_in(epochs: float, size: int, batch_size: float) -> int:
    """How many rounds draw each example so many times on average.

    >>> rounds_in(2, 1000, 300)
    7
    """
    if not 0 < epochs < math.inf:
        raise SettingError(f"epochs must be above 0 and finite, not {epochs:g}")
    return max(1, math.ceil(epochs * size / batch_size))


def settings_of(method: Method, size: int, batch_size: float) -> RoundSettings:
    """The settings that a run of the method starts with."""
    if method.noise_multiplier is None:
        raise SettingError(f"{method.name} has no noise_multiplier yet")
    return RoundSettings(size, batch_size, method.max_grad_norm, method.noise_multiplier)


def refuse_unpriced(method: Method) -> None:
    """Refuse a draw with a query that its price does not hold for."""
    if isinstance(method.sampler, Restricted) and not method.sampler.serves(method.query):
        if isinstance(method.sampler, Cyclic):
            asked = f"MixedSum(Bands({method.sampler.bands}))"
            raise SettingError(f"{method.sampler} is charged for {asked}, not {method.query}")
        if isinstance(method.sampler, PartsInTurn):
            raise SettingError(f"{method.sampler} is charged for MixedSum({method.sampler.mixing}), not {method.query}")
        raise SettingError(
            f"{method.sampler} is charged for sums that throw a second coin, which "
            f"{getattr(method.query, '__name__', method.query)} does not: take query=UnitSum(), or sampler=Poisson()"
        )


def refuse_unmixable(method: Method) -> None:
    """Refuse rounds that are charged together where one may be dropped, or have a clip norm or noise of its own."""
    if isinstance(method.sampler, BallsInBins) and not (type(method.gate) is Open and type(method.control) is Steady):
        raise SettingError(
            "rounds of an epoch share its bins, and are charged together: each must ask once, and all alike. Take "
            "gate=Open() and control=Steady()"
        )
    if not isinstance(method.query, MixedSum):
        return
    mixing = method.query.mixing
    if type(method.gate) is not Open or type(method.control) is not Steady:
        raise SettingError(
            "sums are mixed over rounds, which must all be kept and be alike: take gate=Open() and control=Steady()"
        )
    if not isinstance(method.sampler, Restricted) or method.direction != Unmixed(mixing):
        raise SettingError(
            f"{method.query} goes with draws of its own, or an example is told of more often than is charged, and with "
            f"Unmixed({mixing})"
        )


def refuse_unserved(method: Method) -> None:
    """Refuse noise that is not proved for what the method asks, before anything is released."""
    mechanism = method.noise(1.0)
    if isinstance(mechanism, Restricted) and not mechanism.serves(method.query):
        asked = getattr(method.query, "__name__", type(method.query).__name__)
        raise SettingError(f"{type(mechanism).__name__} is not proved for {asked}: take noise=GaussianNoise")


def hopeless(method: Method, settings: RoundSettings, budget: Budget) -> bool:
    """Whether nothing is proved of a method at any noise: then a budget means nothing, and that is said."""
    cost = price(tally(method, settings, 1), budget.delta, accountant="rdp", adjacency=budget.adjacency)
    if math.isinf(cost.epsilon):
        warnings.warn(f"{method.name} has no epsilon to keep: {cost.why}", PrivacyWarning, stacklevel=4)
    return math.isinf(cost.epsilon)


def with_least_noise(
    method: Method,
    size: int,
    batch_size: float,
    rounds: int | None,
    budget: Budget | None,
    already: tuple[Event, ...],
) -> Method:
    """The method with the least noise that the budget affords so many rounds."""
    if budget is None or rounds is None:
        raise SettingError(
            f"{method.name} was given no budget: give epsilon (--epsilon; to a Run, a budget and rounds or epochs), "
            "from which the noise follows, or a noise_multiplier"
        )

    method = for_rounds(method, size, batch_size, rounds)

    def spent(noise: float) -> dict[Event, int]:
        return tally(method, settings_of(replace(method, noise_multiplier=noise), size, batch_size), rounds, already)

    if math.isinf(price(spent(1e3), budget.delta, accountant="rdp", adjacency=budget.adjacency).epsilon):
        raise SettingError(f"{method.name} gives no differential privacy: set its noise_multiplier, not a budget")
    return replace(method, noise_multiplier=calibrate.least_noise(spent, budget))


def affordable(
    method: Method, settings: RoundSettings, rounds: int | None, budget: Budget, already: tuple[Event, ...]
) -> int:
    """The most rounds that the budget affords, no more than were asked for."""

    def spent(count: int) -> dict[Event, int]:
        made = for_rounds(method, settings.size, settings.batch_size, count)
        return tally(made, settings, count, already)

    if rounds is not None and calibrate.within(spent(rounds), budget):
        return rounds
    found = calibrate.rounds(spent, budget, rounds)
    if found == 0:
        raise SettingError(
            f"not even one round fits the budget of epsilon {budget.epsilon:g} at delta {budget.delta:g} with "
            f"noise_multiplier {settings.noise_multiplier:g}: use more noise, a smaller batch or a larger budget"
        )
    return found


def largest_batch(
    method: Method,
    size: int,
    rounds: int | None,
    epochs: float | None,
    budget: Budget | None,
    already: tuple[Event, ...],
) -> int:
    """The largest expected batch size that the budget affords at the method's noise."""
    if budget is None or method.noise_multiplier is None or (rounds is None and epochs is None):
        raise SettingError(
            f"{method.name} was given no batch_size: give one, or a budget together with noise_multiplier and rounds "
            "or epochs, from which the batch follows"
        )

    def fits(batch_size: int) -> bool:
        count = rounds if rounds is not None else rounds_in(epochs or 1.0, size, batch_size)
        made = for_rounds(method, size, batch_size, count)
        return calibrate.within(tally(made, settings_of(method, size, batch_size), count, already), budget)

    found = calibrate.largest(fits, size)
    if found == 0:
        raise SettingError(
            f"not even one example a round fits the budget of epsilon {budget.epsilon:g} at delta {budget.delta:g} "
            f"with noise_multiplier {method.noise_multiplier:g}: use more noise, fewer rounds or a larger budget"
        )
    return found
