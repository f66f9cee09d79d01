"""Pictures of scores lie on the truth: every point is reached, every score is in a bar."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reticent.attacks.metrics import Scores, roc, tpr_at_fpr
from reticent.attacks.pictures import BARS, POINTS, histogram, thinned_roc
from reticent.attacks.summary import summarise


def shifted(rng: np.random.Generator, count: int, *, ties: bool = False) -> Scores:
    scores = rng.normal(0.7, 1, count), rng.normal(0, 1, count)
    return Scores(*(side.round(1) if ties else side for side in scores))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("count", [2, 50, 3000])
def test_a_thinned_roc_has_few_points_and_all_are_reached(rng: np.random.Generator, count: int, ties: bool) -> None:
    scores = shifted(rng, count, ties=ties)
    whole, few = roc(scores), thinned_roc(scores)
    assert len(few.fpr) == len(few.tpr) <= POINTS
    assert (few.fpr[0], few.tpr[0]) == (0.0, 0.0)
    assert (few.fpr[-1], few.tpr[-1]) == (1.0, 1.0)
    reached = {(round(fpr, 5), round(tpr, 5)) for fpr, tpr in zip(whole.fpr, whole.tpr, strict=True)}
    assert {(round(fpr, 5), round(tpr, 5)) for fpr, tpr in zip(few.fpr, few.tpr, strict=True)} <= reached
    assert list(few.fpr) == sorted(few.fpr)


def test_the_end_with_few_false_alarms_is_kept_whole(rng: np.random.Generator) -> None:
    scores = shifted(rng, 3000)
    few = thinned_roc(scores)
    for alarms in range(1, 21):
        best = max(tpr for fpr, tpr in zip(few.fpr, few.tpr, strict=True) if fpr <= alarms / 3000 + 1e-7)
        assert best == pytest.approx(tpr_at_fpr(scores, (alarms + 1e-6) / 3000).tpr, abs=1e-5)
    none = max(tpr for fpr, tpr in zip(few.fpr, few.tpr, strict=True) if fpr == 0)
    assert none == pytest.approx((scores.members > scores.outsiders.max()).mean(), abs=1e-5)


def test_every_score_is_in_a_bar_and_a_wild_one_does_not_squeeze_the_others(rng: np.random.Generator) -> None:
    scores = shifted(rng, 500)
    wild = Scores(np.append(scores.members, 1e6), scores.outsiders)
    bars = histogram(wild)
    assert (sum(bars.members), sum(bars.outsiders)) == (501, 500)
    assert (len(bars.edges), len(bars.members)) == (BARS + 1, BARS)
    assert bars.edges[-1] < 10
    inside = np.histogram(wild.members, np.array(bars.edges))[0]
    np.testing.assert_allclose(bars.members[1:-1], inside[1:-1], atol=1)  # an edge is stored with six digits


def test_scores_that_are_all_alike_are_one_bar() -> None:
    bars = histogram(Scores(np.ones(5), np.ones(7)))
    assert sorted(bars.members)[-2:] == [0, 5]
    assert sorted(bars.outsiders)[-2:] == [0, 7]


def test_a_summary_stores_both_in_a_few_kilobytes(rng: np.random.Generator) -> None:
    stored = summarise("loss", shifted(rng, 2000)).to_json()
    assert len(stored["fpr"]) > 50
    assert sum(stored["histogram"]["members"]) == 2000
    assert len(json.dumps(stored)) < 8000
