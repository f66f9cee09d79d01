"""Learned attacks: they transfer, they never score a record they were fitted on, and the blind baseline sees shifts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax

from reticent.attacks.learned import blind, cross_fitted, posterior_features, taught, whole_outputs
from reticent.attacks.metrics import Scores, auc, auc_standard_error
from reticent.errors import SettingError


def test_features_do_not_depend_on_the_order_of_the_classes(rng: np.random.Generator) -> None:
    posteriors, labels = softmax(rng.normal(size=(20, 5)), axis=1), rng.integers(0, 5, 20)
    order = rng.permutation(5)
    moved = posterior_features(posteriors[:, order], np.argsort(order)[labels])
    np.testing.assert_allclose(moved, posterior_features(posteriors, labels))


@pytest.mark.parametrize("kind", ["mlp", "forest"])
def test_a_shadow_models_members_teach_about_the_targets(overfitted: object, kind: str) -> None:
    toy = overfitted
    posteriors = [torch.softmax(model(toy.x[:500]), 1).detach().numpy() for model in toy.models[:2]]
    asked, known = (posterior_features(model, toy.y[:500].numpy()) for model in posteriors)
    mine, theirs = toy.signals.keep[:2]
    assert auc(Scores.of(taught(known[theirs], known[~theirs], kind)(asked), mine)) > 0.6


def test_the_whole_output_tells_of_every_class_and_of_the_label(rng: np.random.Generator) -> None:
    """Two records with the same loss, and other outputs besides: a threshold on the loss cannot tell them apart."""
    logits = np.log([[0.5, 0.5 - 1e-9, 1e-9], [0.5, 0.25, 0.25]])
    features = whole_outputs(logits, np.array([0, 0]))
    assert features[0, 0] == pytest.approx(features[1, 0])
    assert not np.allclose(features[0], features[1])
    order = rng.permutation(3)
    moved = whole_outputs(logits[:, order], np.argsort(order)[[0, 0]])
    np.testing.assert_allclose(moved[:, :3], features[:, :3])


@pytest.mark.parametrize("kind", ["mlp", "forest"])
def test_cross_fitting_finds_nothing_in_noise(rng: np.random.Generator, kind: str) -> None:
    keep = np.arange(400) < 200
    scores = Scores.of(cross_fitted(rng.normal(size=(400, 8)), keep, kind, trees=50), keep)
    assert abs(auc(scores) - 0.5) < 4 * auc_standard_error(scores)


def test_cross_fitting_finds_what_is_there(rng: np.random.Generator) -> None:
    keep = np.arange(400) < 200
    assert auc(Scores.of(cross_fitted(rng.normal(size=(400, 3)) + keep[:, None], keep, trees=50), keep)) > 0.75


def test_the_blind_baseline_is_near_half_without_a_shift_and_far_with_one(rng: np.random.Generator) -> None:
    keep = rng.random(400) < 0.5
    records = rng.normal(size=(400, 4, 4))
    fair = blind(records, keep)
    assert abs(auc(fair) - 0.5) < 4 * auc_standard_error(fair)
    assert auc(blind(records + keep[:, None, None], keep)) > 0.9


def test_too_few_records_cannot_be_cross_fitted() -> None:
    with pytest.raises(SettingError, match="5 members"):
        cross_fitted(np.zeros((6, 1)), np.arange(6) < 3)
