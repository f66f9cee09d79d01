"""What every method is charged for: one event a round, and which rounds count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from reticent.accounting.events import AnnealedRelease, Composed, Event, SelectiveRelease, Tally
from reticent.accounting.numbers import Numbers, poisson
from reticent.accounting.selective.corners import noisy_test
from reticent.errors import SettingError, UnknownName

FIXED_ATTEMPTS = "the number of attempts was fixed before the run"
HIDDEN = "a rejected candidate stays hidden and everything it changed is restored"
FIXED_ACCEPTED = "the number of accepted updates was fixed before the run"
SECRET = "how many attempts there were, their timing and their logs stay hidden"
PUBLIC = "the hold-out set is public"
SEEN = "every candidate and every test may be seen"


@dataclass(frozen=True)
class Charging:
    """One round's event, which number counts the rounds, and what makes it right."""

    event: Event
    counted: str
    route: str
    assumptions: tuple[str, ...] = ()


def charging(method: str, numbers: Numbers) -> Charging:
    """How a method's rounds are charged, for methods that fix everything in advance.

    >>> charging("dpsgd", Numbers(sample_rate=0.1, noise_multiplier=1.0)).counted
    'steps'
    """
    if method not in CHARGED:
        raise UnknownName("method", method, CHARGED)
    return CHARGED[method](method, numbers)


def whole(method: str, numbers: Numbers) -> Tally:
    """All events of a run with these numbers.

    >>> whole("dpsgd", Numbers(sample_rate=0.1, noise_multiplier=1.0, steps=5))
    {Subsampled(rate=0.1, inner=Gaussian(noise_multiplier=1.0)): 5}
    """
    total: Counter[Event] = Counter(numbers.statistics())
    if method == "noise_decay":
        for event, count in _decayed(method, numbers):
            total[event] += count
        return dict(total)
    charge = charging(method, numbers)
    (count,) = numbers.need(method, charge.counted)
    total[charge.event] += count
    return dict(total)


def _plain(method: str, numbers: Numbers) -> Charging:
    rate, noise = numbers.need(method, "sample_rate", "noise_multiplier")
    return Charging(poisson(rate, noise), "steps", "every step")


def _dpsur(method: str, numbers: Numbers) -> Charging:
    rate, noise, test_rate, test_noise = numbers.need(
        method, "sample_rate", "noise_multiplier", "validation_rate", "validation_noise"
    )
    both = Composed((poisson(rate, noise), poisson(test_rate, test_noise)))
    attempt = noisy_test(rate, noise, test_rate, test_noise, numbers.beta)
    routes = {
        "S": Charging(attempt, "attempts", "S", (FIXED_ATTEMPTS, HIDDEN)),
        "C": Charging(SelectiveRelease(attempt, numbers.cap), "accepted", "C", (FIXED_ACCEPTED, SECRET)),
        "F": Charging(both, "attempts", "F", (FIXED_ATTEMPTS, SEEN)),
    }
    route = numbers.route or "S"
    if route not in routes:
        raise UnknownName("route", route, routes)
    return routes[route]


def _sa_dpsgd(method: str, numbers: Numbers) -> Charging:
    rate, noise = numbers.need(method, "sample_rate", "noise_multiplier")
    step = poisson(rate, noise)
    if numbers.route == "C":
        (rejections,) = numbers.need(method, "max_rejections")
        release = AnnealedRelease(rate, noise, rejections)
        return Charging(release, "accepted", "C", (PUBLIC, FIXED_ACCEPTED, SECRET))
    if numbers.validation_noise is None:
        return Charging(step, "attempts", "every attempt", (PUBLIC, FIXED_ATTEMPTS))
    (test_rate,) = numbers.need(method, "validation_rate")
    both = Composed((step, poisson(test_rate, numbers.validation_noise)))
    return Charging(both, "attempts", "every attempt and its test", (FIXED_ATTEMPTS,))


def _decay(method: str, numbers: Numbers) -> Charging:
    rate, noise = numbers.need(method, "sample_rate", "noise_multiplier")
    return Charging(poisson(rate, noise), "steps", "every step, noises fixed in advance")


def _decayed(method: str, numbers: Numbers) -> list[tuple[Event, int]]:
    """The steps of every epoch with their own noise."""
    rate, noise, steps = numbers.need(method, "sample_rate", "noise_multiplier", "steps")
    if not numbers.shares:
        raise SettingError(f"{method} needs --decay and --epochs")
    each, rest = divmod(steps, len(numbers.shares))
    return [(poisson(rate, noise * share), each + (epoch < rest)) for epoch, share in enumerate(numbers.shares)]


CHARGED: dict[str, Callable[[str, Numbers], Charging]] = {
    **dict.fromkeys(("dpsgd", "dpadam", "auto_s", "dpsign_sgd", "dpsign_adam"), _plain),
    "noise_decay": _decay,
    "dpsur": _dpsur,
    "sa_dpsgd": _sa_dpsgd,
}
