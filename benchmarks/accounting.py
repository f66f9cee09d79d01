"""How long accounting takes: python -m benchmarks.accounting [--json]

Seconds of processor time, so that other work on the machine counts little; the limits are the project's own.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial

from reticent.accounting import Budget, Gaussian, Planned, RenyiFilter, Subsampled, calibrate, price
from reticent.accounting.renyi.dpis import ImportancePlan
from reticent.methods import Method, dpsur, noise_decay, plan

DELTA = 1e-5


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def schedule(distinct: int, count: int) -> dict[Subsampled, int]:
    return {Subsampled(0.01, Gaussian(4 - 3 * i / distinct)): count for i in range(distinct)}


def warm() -> float:
    """100 distinct events whose own distributions are known already, in a tally never priced before."""
    price(schedule(100, 100), DELTA)
    return seconds(lambda: price(schedule(100, 100) | {Gaussian(100.0): 1}, DELTA))


def live(allowance: Planned | RenyiFilter, steps: int = 10_000) -> float:
    event = Subsampled(0.01, Gaussian(50.0))
    return seconds(lambda: [allowance.spend(event) for _ in range(steps) if allowance.covers(event)]) / steps


def worst_noise() -> float:
    """The slowest of epsilon 0.01 to 1000 over rates and numbers of steps."""
    grid = [
        (10.0**power, rate, count)
        for power in range(-2, 4)
        for rate, count in ((0.01, 10_000), (0.2, 100), (1e-3, 10_000))
    ]
    search = calibrate.noise_multiplier
    return max(seconds(partial(search, epsilon, DELTA, rate, count)) for epsilon, rate, count in grid)


def dpis() -> None:
    plan = ImportancePlan(60000, 2048, 30, Budget(4.0, DELTA))
    plan.schedule([1 - 0.7 * epoch / 29 for epoch in range(30)])


def noise_of(method: Method, *, size: int, batch_size: float, rounds: int) -> Callable[[], object]:
    """Find the least noise of a method, as a run would."""
    return lambda: plan(method, size=size, batch_size=batch_size, rounds=rounds, budget=Budget(3.0, DELTA))


MEASURED: dict[str, tuple[Callable[[], float], float]] = {
    "10,000 steps of 100 distinct events, warm": (warm, 0.2),
    "10,000 distinct events": (lambda: seconds(lambda: price(schedule(10_000, 1), DELTA)), 3.0),
    "adding a step to a plan": (lambda: live(Planned({Subsampled(0.01, Gaussian(50.0)): 10**6})), 1e-3),
    "adding a step to a filter": (lambda: live(RenyiFilter(8, 50.0, DELTA)), 1e-3),
    "noise of DP-SGD, slowest of 18": (worst_noise, 3.0),
    "noise of DPSUR, every attempt": (
        lambda: seconds(noise_of(dpsur(validation_noise=0.8), size=60_000, batch_size=2048, rounds=2000)),
        30.0,
    ),
    "noise of DPSUR, accepted updates": (
        lambda: seconds(
            noise_of(dpsur(validation_noise=0.8, hidden_attempts=True), size=60_000, batch_size=2048, rounds=500)
        ),
        30.0,
    ),
    "noise decay over 50 epochs": (
        lambda: seconds(noise_of(noise_decay(), size=10_000, batch_size=100, rounds=5000)),
        30.0,
    ),
    "plan and schedule of DPIS, 30 epochs": (lambda: seconds(dpis), 30.0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    price([Gaussian(1.0)], DELTA)  # imports and tables
    found = {}
    for name, (measure, limit) in MEASURED.items():
        found[name] = {"seconds": measure(), "limit": limit}
        if not as_json:
            print(f"{name:<44} {found[name]['seconds']:10.6f} s   limit {limit:g} s", flush=True)
    if as_json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
