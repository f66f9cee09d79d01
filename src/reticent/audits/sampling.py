"""The sampler probe: are the draws those that the accountant was told of?"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import stats

from reticent.accounting import Gaussian, Subsampled
from reticent.attacks.intervals import Floats
from reticent.audits.findings import SURELY, Finding
from reticent.audits.toy import examples, make_run
from reticent.inside import Poisson
from reticent.methods import Method

SIZE, BATCH = 20, 2


def probe_sampler(method: Method, *, rounds: int = 4000) -> Finding:
    """If the ledger speaks of a Poisson draw, then every example is drawn by a coin of its own, in every round anew."""
    if not isinstance(method.sampler, Poisson):
        says = f"{type(method.sampler).__name__} claims no Poisson draw: nothing to look at"
        return Finding("sampler", True, says, looked=False)
    run = make_run(method, examples(1.0, size=SIZE), batch_size=BATCH, rounds=1, seed=None)
    probe, settings = run.watch(), run.plan.method.turned(run.plan.settings, 0)
    said = method.sampler.amplify(Gaussian(1.0), settings)
    if not isinstance(said, Subsampled):
        return Finding("sampler", True, "no amplification is claimed, so any draw will do")
    drawn = np.zeros((rounds, SIZE), dtype=np.int64)
    for number, index in enumerate(probe.draws(method.sampler, settings, rounds)):
        np.add.at(drawn[number], index, 1)
    worst, why = min(poisson_doubts(drawn, said.rate), key=lambda doubt: doubt[0])
    says = f"{drawn.mean():.4f} of the examples were drawn, the ledger says {said.rate:g}"
    says += "" if worst > SURELY else f", and {why}"
    return Finding("sampler", worst > SURELY, says, {"rate": float(drawn.mean()), "p_value": worst})


def poisson_doubts(drawn: npt.NDArray[np.int64], rate: float) -> list[tuple[float, str]]:
    """p-values of everything that independent coins would pass; `drawn` counts examples by round."""
    rounds, size = drawn.shape
    lags = {1, 2, max(1, round(1 / rate))}
    return [
        (0.0 if drawn.max(initial=0) > 1 else 1.0, "an example was drawn twice in one round"),
        (float(stats.binomtest(min(int(drawn.sum()), drawn.size), drawn.size, rate).pvalue), "the rate is wrong"),
        (_by_example_p(drawn.sum(axis=0), rounds, rate), "some examples are drawn more often than others"),
        (_sizes_p(drawn.sum(axis=1), size, rate), "the sizes of the draws are not binomial"),
        *((_overlap_p(drawn, rate, lag), f"draws {lag} rounds apart are related") for lag in lags if lag < rounds),
    ]


def _by_example_p(counts: npt.NDArray[np.int64], rounds: int, rate: float) -> float:
    excess = (counts - rounds * rate) ** 2 / (rounds * rate * (1 - rate))
    return float(stats.chi2.sf(excess.sum(), len(counts)))


def _sizes_p(sizes: npt.NDArray[np.int64], size: int, rate: float) -> float:
    """Pearson's test against the binomial law, rare sizes put together."""
    expected: Floats = len(sizes) * stats.binom.pmf(np.arange(size + 1), size, rate)
    observed = np.bincount(np.clip(sizes, 0, size), minlength=size + 1)
    common = expected >= 5
    pairs = [(observed[common], expected[common]), ([observed[~common].sum()], [expected[~common].sum()])]
    seen, hoped = (np.concatenate([np.asarray(pair[side], dtype=np.float64) for pair in pairs]) for side in (0, 1))
    distance = ((seen - hoped) ** 2 / np.maximum(hoped, 1e-9)).sum()
    return float(stats.chi2.sf(distance, int(common.sum())))


def _overlap_p(drawn: npt.NDArray[np.int64], rate: float, lag: int) -> float:
    """How many examples two draws share, `lag` rounds apart: not none (a shuffled epoch), not all (a reused seed)."""
    pairs, size = len(drawn) - lag, drawn.shape[1]
    shared = int((drawn[:-lag] * drawn[lag:]).sum())
    variance = pairs * size * rate**2 * (1 - rate**2) + 2 * max(pairs - lag, 0) * size * rate**3 * (1 - rate)
    return float(2 * stats.norm.sf(abs(shared - pairs * size * rate**2) / math.sqrt(variance)))
