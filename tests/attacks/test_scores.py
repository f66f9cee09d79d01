"""Every score attack: against its definition written as a slow loop, and never looking at the target's membership."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from scipy import stats

from reticent.attacks import lira, rmia
from reticent.attacks.metrics import Scores, auc, tpr_at_fpr
from reticent.attacks.signals import Round, Signals, balanced_design, loss, probability
from reticent.attacks.thresholds import by_population, by_reference, each_round
from reticent.errors import SettingError

ATTACKS: dict[str, Callable[[Round], np.ndarray]] = {
    "loss": lambda view: view.phi,
    "population": by_population,
    "reference": by_reference,
    "lira-online-global": partial(lira.lira_online, variance="global"),
    "lira-online-record": partial(lira.lira_online, variance="record"),
    "lira-offline-global": partial(lira.lira_offline, variance="global"),
    "lira-offline-record": partial(lira.lira_offline, variance="record"),
    "rmia-online": rmia.rmia_online,
    "rmia-offline": partial(rmia.rmia_offline, offline_a=0.3),
}


@pytest.fixture
def signals(rng: np.random.Generator) -> Signals:
    """Records of different difficulty whose confidence rises by one when they are trained on."""
    keep = balanced_design(8, 200, seed=1)
    difficulty = rng.normal(0, 2, 200)
    phi = difficulty + keep + rng.normal(0, 0.5, keep.shape)
    return Signals(phi, keep, rng.normal(0, 2, (1, 100)) + rng.normal(0, 0.5, (8, 100)))


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_finds_members(signals: Signals, name: str) -> None:
    scores = Scores.of(each_round(signals, ATTACKS[name]), signals.keep)
    assert auc(scores) > 0.57


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_finds_what_is_not_there(rng: np.random.Generator, name: str) -> None:
    keep = balanced_design(8, 400, seed=2)
    nothing = Signals(rng.normal(size=keep.shape), keep, rng.normal(size=(8, 100)))
    scores = Scores.of(each_round(nothing, ATTACKS[name]), keep)
    assert abs(auc(scores) - 0.5) < 4 * np.sqrt(1 / (6 * keep.size / 2))


@pytest.mark.parametrize("name", ATTACKS)
def test_the_targets_membership_never_changes_its_own_scores(signals: Signals, name: str) -> None:
    """A score that used the label it is judged by would be an oracle, not an attack."""
    flipped = signals.keep.copy()
    flipped[3] = ~flipped[3]
    other = Signals(signals.phi, flipped, signals.population)
    before, after = (each_round(found, ATTACKS[name]) for found in (signals, other))
    np.testing.assert_array_equal(before[3], after[3])


def test_lira_is_the_log_likelihood_ratio_of_two_normals(signals: Signals) -> None:
    view = signals.round(0)
    online, offline = (attack(view, variance="record") for attack in (lira.lira_online, lira.lira_offline))
    for record in range(20):
        inside = view.shadows[view.seen[:, record], record]
        outside = view.shadows[view.unseen[:, record], record]
        ratio = stats.norm.logpdf(view.phi[record], inside.mean(), inside.std(ddof=1)) - stats.norm.logpdf(
            view.phi[record], outside.mean(), outside.std(ddof=1)
        )
        assert online[record] == pytest.approx(ratio)
        beyond = stats.norm.cdf(view.phi[record], outside.mean(), outside.std(ddof=1))
        assert stats.norm.cdf(offline[record]) == pytest.approx(beyond)


def test_the_global_spread_pools_centred_values_of_its_own_side(rng: np.random.Generator) -> None:
    """Pooling raw values, or the other side's, are slips seen in published code."""
    keep = balanced_design(8, 3000, seed=3)
    phi = rng.normal(0, 5, 3000) + np.where(keep, 2 + 0.3 * rng.normal(size=keep.shape), rng.normal(size=keep.shape))
    view = Signals.of(phi, keep).round(0)
    _, spread_in = lira._fit(view.shadows, view.seen, "global", "with")
    _, spread_out = lira._fit(view.shadows, view.unseen, "global", "without")
    assert spread_in[0] == pytest.approx(0.3, rel=0.05)
    assert spread_out[0] == pytest.approx(1.0, rel=0.05)


def test_the_spread_is_by_record_only_with_enough_models(rng: np.random.Generator) -> None:
    for models, by_record in ((32, False), (64, True)):
        keep = balanced_design(models, 5, seed=0)
        view = Signals.of(rng.normal(size=keep.shape), keep).round(0)
        _, spread = lira._fit(view.shadows, view.seen, "auto", "with")
        assert (len(set(spread)) > 1) == by_record


def test_rmia_is_the_share_of_population_records_beaten(signals: Signals) -> None:
    """The definition of Zarifzadeh et al. 2024, and of Privacy Meter, as a double loop."""
    view, a, gamma = signals.round(2), 0.4, 1.2
    fast = rmia.rmia_offline(view, a, gamma)
    p, pz = probability(view.phi), probability(view.population)
    shadow_p, shadow_pz = probability(view.shadows), probability(view.shadow_population)
    usual_z = ((1 + a) * shadow_pz.mean(axis=0) + 1 - a) / 2
    for record in range(30):
        out = shadow_p[view.unseen[:, record], record].mean()
        ratio = p[record] / (((1 + a) * out + 1 - a) / 2)
        beaten = np.mean([ratio / (pz[z] / usual_z[z]) >= gamma for z in range(len(pz))])
        assert fast[record] == pytest.approx(beaten)


def test_the_population_attack_is_the_quantile_of_the_loss(signals: Signals) -> None:
    view = signals.round(1)
    scores, losses = by_population(view), loss(view.phi)
    for level in (0.1, 0.5, 0.9):
        called = losses < np.quantile(loss(view.population), level, method="inverted_cdf")
        np.testing.assert_array_equal(called, scores > 1 - level + 1e-9)


def test_population_thresholds_by_class_use_only_that_class(signals: Signals) -> None:
    view = signals.round(0)
    labels, others = np.arange(200) % 2, np.arange(100) % 2
    scores = by_population(view, labels, others)
    alone = np.mean(view.population[others == 1] < view.phi[1])
    assert scores[1] == pytest.approx(alone)


def test_the_reference_level_rises_with_confidence_and_is_the_rank_among_outs(signals: Signals) -> None:
    view = signals.round(0)
    levels = by_reference(view)
    for record in range(30):
        outs = view.shadows[view.unseen[:, record], record]
        rank = (outs < view.phi[record]).mean()
        assert abs(levels[record] - rank) <= 0.5 / len(outs) + 1e-9
    higher = Round(view.phi + 0.1, view.shadows, view.seen, view.unseen, view.population, view.shadow_population)
    assert (by_reference(higher) > levels).all()


@pytest.mark.parametrize("name", ["population", "rmia-online", "rmia-offline"])
def test_attacks_that_need_a_population_say_so(name: str) -> None:
    keep = balanced_design(4, 10, seed=0)
    bare = Signals.of(np.zeros(keep.shape), keep).round(0)
    with pytest.raises(SettingError, match="hold some out"):
        ATTACKS[name](bare)


def test_two_models_are_too_few_for_lira() -> None:
    keep = balanced_design(2, 10, seed=0)
    with pytest.raises(SettingError, match="4 models"):
        lira.lira_online(Signals.of(np.zeros(keep.shape), keep).round(0))


def test_lira_beats_the_global_threshold_where_it_matters(overfitted: object) -> None:
    """At low false positive rates records must be judged by their own difficulty (Carlini et al. 2022, fig. 1)."""
    signals = overfitted.signals  # type: ignore[attr-defined]
    ours = Scores.of(each_round(signals, ATTACKS["lira-online-global"]), signals.keep)
    plain = Scores.of(each_round(signals, ATTACKS["loss"]), signals.keep)
    assert tpr_at_fpr(ours, 0.001).tpr >= 5 * max(tpr_at_fpr(plain, 0.001).tpr, 1e-3)


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_works_on_an_overfitted_model(overfitted: object, name: str) -> None:
    signals = overfitted.signals  # type: ignore[attr-defined]
    assert auc(Scores.of(each_round(signals, ATTACKS[name]), signals.keep)) > 0.6
