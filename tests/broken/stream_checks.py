"""Checks of streams: what all rounds of a run together tell of one example is what is charged, once."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from itertools import combinations, pairwise

import numpy as np
import torch

from reticent.accounting import Gaussian, Laplace, RoundOfStream, Unbounded, epsilon
from reticent.accounting.matrices import toeplitz
from reticent.accounting.matrices.buffered import optimised
from reticent.audits.toy import Known, examples, known_loss
from reticent.errors import PrivacyWarning, SettingError
from reticent.inside import Buffers, Clip, MixedSum, PartsInTurn, RoundSettings
from reticent.methods import get, plan
from reticent.run import Run

PARTS, ROUNDS, SIZE, CLIP, NOISE = 4, 22, 40, 0.5, 3.0
METHOD = get("blt", noise_multiplier=NOISE, max_grad_norm=CLIP, buffers=2)
BUFFERS = Buffers(2, rounds=ROUNDS, parts=PARTS)


def _sealed(norm: float, seed: int) -> tuple[torch.Tensor, list[object], float]:
    """Every sealed answer of a run whose gradients do not depend on the model; the events; what is declared."""
    model = Known(4)
    sgd = torch.optim.SGD(model.parameters(), lr=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        run = Run(
            model, sgd, examples(norm, size=SIZE), method=METHOD, loss=known_loss, batch_size=SIZE / PARTS,
            rounds=ROUNDS, delta=1e-5, seed=seed,
        )  # fmt: skip
    probe = run.watch()
    list(run)
    openings = probe.openings
    return torch.stack([one.sealed for one in openings]), [one.event for one in openings], openings[0].sensitivity


def an_example_moves_all_answers_by_what_is_declared() -> None:
    """Whichever part it is in; and in part 0, which takes part first, by hardly less."""
    seen: dict[int, float] = {}
    for seed in range(12):
        with_it, events, declared = _sealed(5.0, seed)
        without, _, _ = _sealed(0.0, seed)
        moved = (with_it - without).norm(dim=1)
        first = int(np.flatnonzero(moved.numpy() > 1e-6)[0])
        assert first < PARTS, "the canary is in none of the parts"
        share = float(moved.square().sum().sqrt()) / declared
        assert share <= 1 + 1e-4, "all rounds together tell more than is declared"
        assert {type(event) for event in events} == {RoundOfStream}
        seen[first] = share
    assert 0 in seen, "no seed put the canary into part 0"
    assert seen[0] >= 0.99, "the canary is not cut: the check is too weak"


def no_pattern_of_rounds_moves_them_further() -> None:
    """By trying all that are so far apart, on columns that fall in many ways; other columns are refused."""
    rng = np.random.default_rng(0)
    for rounds, parts in ((7, 1), (9, 2), (10, 3), (10, 4), (5, 9)):
        for column in (*np.sort(rng.random((6, rounds)) ** 3)[:, ::-1], optimised(2, rounds, parts).column(rounds)):
            said = toeplitz.sensitivity(column, parts)
            columns = np.array([np.concatenate([np.zeros(late), column[: rounds - late]]) for late in range(rounds)])
            most = 0.0
            for count in range(1, rounds + 1):
                for when in combinations(range(rounds), count):
                    if all(later - sooner >= parts for sooner, later in pairwise(when)):
                        most = max(most, float(np.linalg.norm(columns[list(when)].sum(0))))
            assert abs(said - most) <= 1e-9 * most
    for wrong in (np.array([1.0, -0.5, 0.1]), np.array([0.5, 1.0, 0.1]), np.array([1.0, 0.2, 0.3])):
        try:
            toeplitz.sensitivity(wrong, 2)
        except SettingError:
            continue
        raise AssertionError("a column that nothing is proved of was taken")


def a_stream_is_charged_once_and_whole() -> None:
    """At the noise over the sensitivity of all rounds, without any gain by chance; two streams are two."""
    said = plan(METHOD, size=SIZE, batch_size=SIZE / PARTS, rounds=ROUNDS, delta=1e-5)
    column = BUFFERS.matrix.column(ROUNDS)
    late = [np.concatenate([np.zeros(at), column[: ROUNDS - at]]) for at in range(0, ROUNDS, PARTS)]
    inner = Gaussian(NOISE / float(np.linalg.norm(np.sum(late, 0))))
    assert abs(said.price.epsilon - epsilon([inner], 1e-5)) <= 1e-6
    assert abs(epsilon(said.tally(5), 1e-5) - said.price.epsilon) <= 1e-9, "a part of a stream is charged whole"
    twice = {event: 2 * count for event, count in said.tally().items()}
    assert abs(epsilon(twice, 1e-5) - epsilon([inner, inner], 1e-5)) <= 1e-6
    odd = {RoundOfStream(0, 3, inner): 1, RoundOfStream(1, 3, inner): 3}
    assert abs(epsilon(odd, 1e-5) - epsilon({inner: 4}, 1e-5)) <= 1e-9


def nothing_is_charged_that_is_not_proved() -> None:
    """Noise that is not normal, rounds that were not planned, and buffers that were not planned cost infinity."""
    sampler = PartsInTurn(BUFFERS)
    for event, number in ((Laplace(1.0), 0), (Unbounded("no noise"), 0), (Gaussian(1.0), ROUNDS)):
        now = RoundSettings(SIZE, SIZE / PARTS, 1.0, 1.0, number)
        assert math.isinf(epsilon([sampler.amplify(event, now)], 1e-5))
    now = RoundSettings(SIZE, SIZE / PARTS, 1.0, 1.0)
    assert math.isfinite(epsilon([sampler.amplify(Gaussian(1.0), now)], 1e-5))
    assert math.isinf(epsilon([METHOD.gradient_event(now)], 1e-5)), "nobody has planned it"


def rounding_of_all_rounds_is_made_up_for() -> None:
    """All answers are rounded, each by a share of the noise's sensitivity at the most."""
    query = MixedSum(BUFFERS)(None, Clip(), RoundSettings(SIZE, SIZE / PARTS, CLIP, 1.0))  # type: ignore[arg-type]
    needed = CLIP * BUFFERS.sensitivity + math.sqrt(ROUNDS) * 2.0**-12 * query.sensitivity
    assert needed <= query.sensitivity * (1 + 1e-12)


CHECKS: list[Callable[[], None]] = [
    an_example_moves_all_answers_by_what_is_declared,
    no_pattern_of_rounds_moves_them_further,
    a_stream_is_charged_once_and_whole,
    nothing_is_charged_that_is_not_proved,
    rounding_of_all_rounds_is_made_up_for,
]
