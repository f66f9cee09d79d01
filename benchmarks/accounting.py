"""How long accounting takes: python -m benchmarks.accounting [--json]

Seconds of processor time, so that other work on the machine counts little; the limits are the project's own.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from functools import partial

from reticent.accounting import Budget, Gaussian, Planned, RenyiFilter, Subsampled, calibrate, price
from reticent.accounting.numbers import Numbers
from reticent.accounting.renyi.dpis import ImportancePlan
from reticent.accounting.solve import solve

DELTA = 1e-5
TEST = {"validation_rate": 256 / 60000, "validation_noise": 0.8}


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


def hidden(method: str, **numbers: object) -> Callable[[], object]:
    return lambda: solve(method, Numbers(epsilon=3.0, **numbers))  # type: ignore[arg-type]


MEASURED: dict[str, tuple[Callable[[], float], float]] = {
    "10,000 steps of 100 distinct events, warm": (warm, 0.2),
    "10,000 distinct events": (lambda: seconds(lambda: price(schedule(10_000, 1), DELTA)), 3.0),
    "adding a step to a plan": (lambda: live(Planned({Subsampled(0.01, Gaussian(50.0)): 10**6})), 1e-3),
    "adding a step to a filter": (lambda: live(RenyiFilter(8, 50.0, DELTA)), 1e-3),
    "noise of DP-SGD, slowest of 18": (worst_noise, 3.0),
    "noise of DPSUR, route S": (lambda: seconds(hidden("dpsur", sample_rate=0.0341, attempts=2000, **TEST)), 30.0),
    "noise of DPSUR, route C": (
        lambda: seconds(hidden("dpsur", sample_rate=0.0341, accepted=500, route="C", **TEST)),
        30.0,
    ),
    "noise of SA-DPSGD, route C": (
        lambda: seconds(hidden("sa_dpsgd", sample_rate=0.01, accepted=500, route="C", max_rejections=10)),
        30.0,
    ),
    "noise decay over 50 epochs": (
        lambda: seconds(
            hidden("noise_decay", sample_rate=0.01, steps=5000, shares=tuple(math.exp(-0.01 * t) for t in range(50)))
        ),
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
