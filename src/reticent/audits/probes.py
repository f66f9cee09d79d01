"""Deterministic probes of the real step: what one example moves, what noise there is, what the ledger holds."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch
from scipy import stats

from reticent.accounting import (
    BinInTurn,
    Event,
    FixedSize,
    Gaussian,
    NoisyMax,
    PartInTurn,
    RoundOfStream,
    Subsampled,
    Truncated,
)
from reticent.attacks.intervals import Floats
from reticent.audits.findings import SURELY, Finding
from reticent.audits.toy import SIZE, examples, make_run, place, size_for
from reticent.inside.probe import Opening
from reticent.methods import Method
from reticent.outside import Averaged, Open

SLACK = 1e-4
"""Float32 arithmetic may pass a bound by this share."""


def probe_sensitivity(method: Method) -> Finding:
    """Record a round without the canary, replay it with one: each sealed answer moves by at most what it declares.

    Small and middling norms matter: a clip by the squared norm is safe for huge gradients only. What came out is the
    same in both rounds, so any difference outside the vault went round the door.
    """
    worst, case = 0.0, "nothing moved"
    for clip in (0.1, 1.0):
        audited = replace(method, max_grad_norm=clip)
        without, left = _round(audited, 0.0)
        for norm in (0.1 / clip, math.sqrt(clip), 1.0, 1.37, 100.0):
            with_canary, reached = _round(audited, norm, without)
            if len(with_canary) != len(without):
                return Finding("sensitivity", False, "how many answers are released depends on one example")
            if not torch.equal(left, reached):
                return Finding(
                    "sensitivity", False, "the same released numbers led to another model: something went round"
                )
            for number, (one, two) in enumerate(zip(without, with_canary, strict=True)):
                share = _moved(one, two) / one.sensitivity
                if share > worst:
                    worst, case = share, f"answer {number + 1}, clip norm {clip:g}, a canary of norm {norm:g}"
    if worst == 0.0:
        return Finding("sensitivity", True, "not looked at: the canary moved nothing", looked=False)
    says = f"one example moves an answer by at most {worst:.4g} of what is declared ({case})"
    return Finding("sensitivity", worst <= 1 + SLACK, says, {"largest_share": worst})


def _moved(one: Opening, two: Opening) -> float:
    """How far an answer moved, in the norm that its noise is made for: the largest score for a noisy maximum."""
    change = (one.sealed.double() - two.sealed.double()).reshape(-1)
    return float(change.abs().max() if isinstance(one.event, NoisyMax) else change.norm())


def _round(method: Method, norm: float, replay: list[Opening] | None = None) -> tuple[list[Opening], torch.Tensor]:
    """A watched round with everybody in and frozen coins: what was sealed, and where the model went.

    Where parts of the examples take turns, it is as many rounds as there are parts.
    """
    size, turns = size_for(method), getattr(method.sampler, "bands", 1)
    run = make_run(method, examples(norm, size=size), batch_size=size, rounds=turns, seed=0)
    probe = run.watch(replay or ())
    for _ in range(turns):
        run.step()
    return probe.openings, place(run)


def probe_noise(method: Method, *, width: int = 10_000, rounds: int = 6) -> Finding:
    """The noise of every release is as large as its event says, normal, fine-grained, and never the same twice."""
    noises: list[Floats] = []
    size = size_for(method)
    # Noise that forgets the clip norm or the batch shows at one of these; of the second, most draws are empty.
    for clip, batch_size in ((0.3, 2.0), (3.0, 0.1)):
        run = make_run(
            replace(method, max_grad_norm=clip),
            examples(0.0, size=size, width=100 if size > SIZE else width, quiet=True),
            batch_size=batch_size,
            rounds=rounds,
            seed=None,
        )
        probe = run.watch()
        for _ in range(rounds):
            before, seen = place(run), len(probe.openings)
            run.step()
            strayed = _strayed(method, probe.openings[seen:], (before - place(run)) * batch_size)
            if strayed > 1e-3:
                return Finding(
                    "noise", False, f"the step differs from what was released by {strayed:.2g} of its length"
                )
        found = [(one, _noise_said(one.event)) for one in probe.openings]
        noises += [_standardised(one, said) for one, said in found if said is not None]
    if not noises:
        return Finding("noise", True, "there is no Gaussian release to measure")
    worst, why = min(_doubts(noises), key=lambda doubt: doubt[0])
    ratio = float(np.sqrt(np.mean(np.concatenate(noises) ** 2)))
    says = f"noise is {ratio:.4f} of what the ledger says" + ("" if worst > SURELY else f", and {why}")
    return Finding("noise", worst > SURELY, says, {"ratio": ratio, "p_value": worst})


def _strayed(method: Method, openings: list[Opening], moved: torch.Tensor) -> float:
    """How far the model moved beside what was released, where the method says that it moves just so."""
    if not (isinstance(method.direction, Averaged) and isinstance(method.gate, Open)):
        return 0.0
    released = next(one.released for one in openings if one.released.numel() == moved.numel())
    return float((moved - released).norm() / released.norm().clamp(min=1e-12))


def _noise_said(event: Event) -> float | None:
    match event:
        case Gaussian(noise_multiplier) | Subsampled(_, Gaussian(noise_multiplier)):
            return noise_multiplier
        case PartInTurn(_, _, inner) | FixedSize(_, _, inner) | Truncated(_, _, _, inner) | BinInTurn(_, _, inner):
            return _noise_said(inner)
        case RoundOfStream(_, _, inner):
            return _noise_said(inner)
    return None


def _standardised(opening: Opening, noise_multiplier: float) -> Floats:
    noise = (opening.released.double() - opening.sealed.double()) / (noise_multiplier * opening.sensitivity)
    return noise.reshape(-1).numpy()


def _doubts(noises: list[Floats]) -> list[tuple[float, str]]:
    """p-values of everything that independent standard normal noise would pass."""
    found = []
    long = [noise for noise in noises if len(noise) > 1000]
    for noise in [*long, np.concatenate([n for n in noises if len(n) <= 1000] or [np.empty(0)])]:
        if len(noise):
            found += [(_spread_p(half), "its size is wrong") for half in np.array_split(noise, 2) if len(half)]
    for one, two in pairwise(long):
        found.append((_correlation_p(one, two), "two rounds have related noise"))
    for noise in long:
        half = len(noise) // 2
        found.append((_correlation_p(noise[:half], noise[half : 2 * half]), "two layers have related noise"))
        found.append((float(stats.kstest(noise, "norm").pvalue), "it is not normal"))
        found.append((1.0 if len(np.unique(noise)) > 0.9 * len(noise) else 0.0, "it is coarse"))
    return found


def _spread_p(noise: Floats) -> float:
    total = float((noise**2).sum())
    return float(2 * min(stats.chi2.cdf(total, len(noise)), stats.chi2.sf(total, len(noise))))


def _correlation_p(one: Floats, two: Floats) -> float:
    spread = float(np.sqrt((one**2).sum() * (two**2).sum()))
    return 0.0 if spread == 0 else float(2 * stats.norm.sf(abs(one @ two) / spread * math.sqrt(len(one))))


def probe_ledger(method: Method, *, rounds: int = 40) -> Finding:
    """The ledger holds what was planned for so many rounds, empty draws included, and every release is in it."""
    size = size_for(method)
    run = make_run(method, examples(1.0, size=size), batch_size=size / 8, rounds=rounds, seed=None)
    probe = run.watch()
    for _ in run:
        pass
    written, planned = run.ledger.tally(), run.plan.tally(rounds)
    if not run.plan.adaptive and written != planned:
        says = f"{sum(written.values())} events were written where {sum(planned.values())} were planned"
        return Finding("ledger", False, says)
    covered = method.charge(run.plan.method.turned(run.plan.settings, 0)).covers
    if not covered and Counter(one.event for one in probe.openings) != written:
        return Finding("ledger", False, "a release is not in the ledger")
    empty = sum(one.drawn == 0 for one in probe.openings)
    return Finding("ledger", True, f"{len(run.ledger)} events for {run.number} rounds as planned, {empty} empty draws")
