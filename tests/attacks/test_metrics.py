"""Metrics against brute force, scikit-learn and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score, roc_curve

from reticent.attacks.intervals import rate_at_least, rate_at_most, rate_between
from reticent.attacks.metrics import (
    Scores,
    auc,
    auc_interval,
    auc_standard_error,
    balanced_accuracy,
    roc,
    tpr_at_fpr,
)
from reticent.attacks.summary import summarise
from reticent.errors import SettingError

TIED = st.lists(st.integers(-3, 3), min_size=1, max_size=30).map(lambda values: np.array(values, dtype=float))


def labelled(scores: Scores) -> tuple[np.ndarray, np.ndarray]:
    truth = np.r_[np.ones(len(scores.members)), np.zeros(len(scores.outsiders))]
    return truth, np.r_[scores.members, scores.outsiders]


@given(TIED, TIED)
def test_roc_and_auc_agree_with_scikit_learn_on_ties(members: np.ndarray, outsiders: np.ndarray) -> None:
    scores = Scores(members, outsiders)
    truth, values = labelled(scores)
    fpr, tpr, _ = roc_curve(truth, values, drop_intermediate=False)
    found = roc(scores)
    np.testing.assert_allclose(found.fpr, fpr, atol=1e-12)
    np.testing.assert_allclose(found.tpr, tpr, atol=1e-12)
    assert auc(scores) == pytest.approx(roc_auc_score(truth, values))


@given(TIED, TIED)
def test_auc_turns_round_with_the_scores(members: np.ndarray, outsiders: np.ndarray) -> None:
    assert auc(Scores(members, outsiders)) == pytest.approx(1 - auc(Scores(-members, -outsiders)))


def test_auc_interval_agrees_with_scipy_bca(rng: np.random.Generator) -> None:
    scores = Scores(rng.normal(1.0, 1, 40), rng.normal(0.0, 1, 30))

    def statistic(members: np.ndarray, outsiders: np.ndarray) -> float:
        return auc(Scores(members, outsiders))

    theirs = stats.bootstrap(
        (scores.members, scores.outsiders), statistic, method="BCa", n_resamples=4000, vectorized=False, rng=1
    ).confidence_interval
    low, high = auc_interval(scores, resamples=4000)
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.01)


def test_auc_standard_error_is_the_spread_of_the_auc(rng: np.random.Generator) -> None:
    many = [Scores(rng.normal(0.5, 1, 200), rng.normal(0.0, 1, 100)) for _ in range(300)]
    spread = np.std([auc(scores) for scores in many])
    assert np.mean([auc_standard_error(scores) for scores in many]) == pytest.approx(spread, rel=0.15)


@given(TIED, TIED, st.floats(0.05, 0.9))
def test_tpr_at_fpr_is_the_best_allowed_threshold(members: np.ndarray, outsiders: np.ndarray, fpr: float) -> None:
    scores = Scores(members, outsiders)
    if fpr * len(outsiders) < 1:
        with pytest.raises(SettingError, match="non-members"):
            tpr_at_fpr(scores, fpr)
        return
    cuts = [*np.unique(np.r_[members, outsiders]), np.inf]
    best = max((members >= cut).mean() for cut in cuts if (outsiders >= cut).mean() <= fpr)
    found = tpr_at_fpr(scores, fpr)
    assert found.tpr == pytest.approx(best)
    assert found.low <= found.tpr <= found.high


def test_few_false_positives_are_marked_as_unstable(rng: np.random.Generator) -> None:
    scores = Scores(rng.normal(size=500), rng.normal(size=500))
    assert not tpr_at_fpr(scores, 0.01).stable
    assert tpr_at_fpr(scores, 0.05).stable


def test_the_oracle_threshold_is_optimistic_and_the_heldout_one_is_not(rng: np.random.Generator) -> None:
    nothing = [Scores(rng.normal(size=40), rng.normal(size=40)) for _ in range(200)]
    heldout = [balanced_accuracy(scores, "heldout", seed=i).balanced for i, scores in enumerate(nothing)]
    oracle = [balanced_accuracy(scores, "oracle").balanced for scores in nothing]
    assert abs(np.mean(heldout) - 0.5) < 4 * np.std(heldout) / np.sqrt(len(heldout))
    assert np.mean(oracle) > 0.55


def test_advantage_is_the_largest_gap(rng: np.random.Generator) -> None:
    scores = Scores(rng.normal(1, 1, 50), rng.normal(0, 1, 50))
    curve = roc(scores)
    assert balanced_accuracy(scores, "oracle").advantage == pytest.approx((curve.tpr - curve.fpr).max())


@given(st.integers(1, 60), st.data(), st.floats(0.001, 0.5))
def test_clopper_pearson_is_the_exact_binomial_tail(trials: int, data: st.DataObject, alpha: float) -> None:
    hits = data.draw(st.integers(0, trials))
    upper, lower = rate_at_most(hits, trials, alpha), rate_at_least(hits, trials, alpha)
    if hits < trials:
        assert stats.binom.cdf(hits, trials, upper) == pytest.approx(alpha, rel=1e-6)
    if hits > 0:
        assert stats.binom.sf(hits - 1, trials, lower) == pytest.approx(alpha, rel=1e-6)
    assert lower <= hits / trials <= upper


def test_the_two_sided_interval_agrees_with_scipy() -> None:
    theirs = stats.binomtest(7, 20).proportion_ci(0.95, method="exact")
    assert rate_between(7, 20) == pytest.approx((theirs.low, theirs.high))


def test_a_summary_gives_what_it_can_and_says_what_it_refuses(rng: np.random.Generator) -> None:
    found = summarise("loss", Scores(rng.normal(1, 1, 2000), rng.normal(0, 1, 2000)))
    assert [rate.fpr for rate in found.at_low_rates] == [0.01, 0.001]
    assert len(found.refused) == 1
    assert "10000 non-members" in found.refused[0]
    data = found.to_json()
    assert data["heldout"]["chosen"] == "heldout"
    assert data["oracle"]["advantage"] == pytest.approx(2 * data["oracle"]["balanced"] - 1)


@pytest.mark.parametrize("bad", [np.array([]), np.array([np.nan]), np.array([np.inf])])
def test_scores_that_cannot_be_judged_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(SettingError):
        Scores(bad, np.array([0.0]))
