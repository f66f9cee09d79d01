"""The step audit: the real step with and without a canary, many times, against the claim of its own ledger."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np
import torch

from reticent.accounting import Event, Gaussian, Subsampled
from reticent.attacks.intervals import Floats
from reticent.audits.bounds import epsilon_lower, epsilon_under_gdp
from reticent.audits.claims import (
    EPSILONS,
    Claim,
    Contradiction,
    contradiction,
    ledger_claim,
    promising_thresholds,
    step_claim,
)
from reticent.audits.counts import Counts, Evidence
from reticent.audits.one_layer import finds_one_layer
from reticent.audits.toy import SIZE, Known, direction, examples, keeps_apart, make_run, place
from reticent.inside import GradientSum
from reticent.methods import Method
from reticent.outside import Averaged, Remembering

HUGE = 100.0
"""The canary's gradient norm: far above the clip norm, so that it is worth all that one example may be worth."""

TRIED = 0.3
"""The share of runs that choose thresholds and directions; the rest certify."""

ROUNDS, COPIES = 20, 20
"""A step shows up to `COPIES` of the toy while there are `ROUNDS` still: what is wrong may be between rounds."""


@dataclass(frozen=True, eq=False)
class StepAudit:
    """What many repetitions of one step say about its claim."""

    rate: float
    runs: int
    confidence: float
    delta: float
    upper: float
    """The epsilon that the ledger of the step claims."""
    lower: float
    """The epsilon that the runs prove: the largest of the claim's family that they contradict."""
    by_counting: float
    """The lower bound by Clopper-Pearson alone, without any curve."""
    under_gdp: float
    """An estimate, valid if the step is Gaussian."""
    contradiction: Contradiction | None


def audit_step(
    method: Method, *, rate: float, runs: int = 2000, alpha: float = 0.05, delta: float = 1e-5, seed: int | None = None
) -> StepAudit:
    """Run the step `runs` times without and `runs` times with a canary, and judge what came out.

    Promise: a step that keeps to its claim is contradicted with chance at most `alpha`.
    """
    released = finds_one_layer(method)  # which has no gradients: where the canary lies in its answers is learned
    look, known = (_answers, []) if released else (_updates, [direction().double().numpy()])
    absent, events = look(method, 0.0, rate, runs, seed)
    present, _ = look(method, HUGE, rate, runs, None if seed is None else seed + 1)
    claim = ledger_claim(events)
    statistics = _statistics(absent, present, known)
    level = alpha / len(statistics)

    def contradicted(judged: Claim) -> Contradiction | None:
        found = (_judge(evidence, judged, level) for evidence in statistics)
        return next((one for one in found if one is not None), None)

    by_counting = _best(statistics[0], partial(epsilon_lower, delta=delta, alpha=alpha))
    return StepAudit(
        rate=rate,
        runs=runs,
        confidence=1 - alpha,
        delta=delta,
        upper=claim.epsilon(delta) if claim is not None else math.inf,
        lower=_largest_contradicted(events, contradicted, delta, by_counting),
        by_counting=by_counting,
        under_gdp=_best(statistics[0], partial(epsilon_under_gdp, delta=delta, alpha=alpha)),
        contradiction=contradicted(claim) if claim is not None else None,
    )


def _updates(method: Method, norm: float, rate: float, runs: int, seed: int | None) -> tuple[Floats, dict[Event, int]]:
    """The update of each step, in units of the clip norm, and what the ledger wrote for one of them.

    The toy's gradients do not depend on where the model is, so the steps of one run are repetitions of one step; and
    where a method keeps apart what no example has in common, so are the copies of the toy in one step.
    """
    method = _without_memory(method)
    copies = max(1, min(COPIES, runs // ROUNDS)) if keeps_apart(method) else 1
    size, rounds = copies * SIZE, math.ceil(runs / copies)
    run = make_run(method, examples(norm, copies=copies), batch_size=size * rate, rounds=rounds, seed=seed)
    run.watch()  # a run with a canary is no run to state a guarantee for
    places = [place(run)]
    for _ in range(rounds):
        run.step()
        places.append(place(run))
    moved = -torch.stack(places).diff(dim=0).double() * (size * rate / method.max_grad_norm)
    first = Counter(entry.event for entry in run.ledger if entry.round == 0)
    return cast("Known", run.model).moved(moved)[:runs].numpy(), dict(first)


def _answers(method: Method, norm: float, rate: float, runs: int, seed: int | None) -> tuple[Floats, dict[Event, int]]:
    """What is released in each step of a method that finds one layer, in rows: the layer follows from it."""
    run = make_run(method, examples(norm), batch_size=SIZE * rate, rounds=runs, seed=seed)
    probe = run.watch()
    for _ in range(runs):
        run.step()
    first = Counter(entry.event for entry in run.ledger if entry.round == 0)
    return torch.stack([one.released.double().reshape(-1) for one in probe.openings]).numpy(), dict(first)


def _without_memory(method: Method) -> Method:
    """A filter over rounds makes something of many releases: what one step reveals is what it was given in that one."""
    remembers = isinstance(method.direction, Remembering) and method.query is GradientSum
    return replace(method, direction=Averaged()) if remembers else method


def _statistics(absent: Floats, present: Floats, known: list[Floats]) -> list[Evidence]:
    """Numbers for each update: along the canary where it is known, and along what the first runs show it to be."""
    cut = int(TRIED * len(absent))
    learned = present[:cut].mean(axis=0) - absent[:cut].mean(axis=0)
    return [Evidence(absent @ way, present @ way) for way in (*known, learned)]


def _best(evidence: Evidence, bound: Callable[[Counts], float]) -> float:
    """A bound at the threshold where it is largest on the first runs, certified by the rest."""
    tried, rest = evidence.split(TRIED)
    cuts = np.quantile(np.concatenate([tried.absent, tried.present]), np.linspace(0.02, 0.98, 49))
    return bound(rest.count(float(max(cuts, key=lambda cut: bound(tried.count(float(cut)))))))


def _judge(evidence: Evidence, claim: Claim, alpha: float) -> Contradiction | None:
    tried, rest = evidence.split(TRIED)
    return contradiction(rest, claim, promising_thresholds(tried, claim), alpha)


def _largest_contradicted(
    events: dict[Event, int], contradicted: Callable[[Claim], Contradiction | None], delta: float, at_least: float
) -> float:
    """The epsilon of the quietest claim of the same kind that the runs contradict; else what counting proves."""
    match list(events):
        case [Gaussian(noise)]:
            rate = 1.0
        case [Subsampled(rate, Gaussian(noise))]:
            pass
        case _:
            return at_least
    low, high = math.log(noise / 100), math.log(noise * 100)  # more noise: a stronger claim, easier to contradict
    if contradicted(step_claim(rate, math.exp(high))) is None:
        return at_least
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if contradicted(step_claim(rate, math.exp(middle))) is not None else (middle, high)
    return max(at_least, min(step_claim(rate, math.exp(high)).epsilon(delta), float(EPSILONS[-1])))
