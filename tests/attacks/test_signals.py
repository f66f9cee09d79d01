"""The score matrix: confidences that never saturate, a balanced design, and a target that is never its own shadow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

from reticent.attacks.signals import Signals, balanced_design, confidence, loss, probability
from reticent.errors import DataError, SettingError


def test_confidence_is_the_log_odds_of_the_true_class(rng: np.random.Generator) -> None:
    logits, labels = rng.normal(0, 2, (50, 5)), rng.integers(0, 5, 50)
    p = np.exp(log_softmax(logits, axis=1))[np.arange(50), labels]
    phi = confidence(logits, labels)
    np.testing.assert_allclose(phi, np.log(p / (1 - p)), rtol=1e-9)
    np.testing.assert_allclose(loss(phi), -np.log(p), rtol=1e-9)
    np.testing.assert_allclose(probability(phi), p, rtol=1e-9)


def test_confident_records_do_not_tie() -> None:
    logits = np.array([[50.0, 0.0], [60.0, 0.0], [500.0, 0.0]], dtype=np.float32)
    phi = confidence(logits, [0, 0, 0])
    assert np.isfinite(phi).all()
    assert (np.diff(phi) > 0).all()


def test_confidence_leaves_its_input_alone() -> None:
    logits = np.ones((2, 3))
    confidence(logits, [0, 1])
    assert (logits == 1).all()


def test_one_class_has_no_log_odds() -> None:
    with pytest.raises(DataError, match="two classes"):
        confidence(np.ones((2, 1)), [0, 0])


@given(st.integers(1, 10), st.integers(1, 40), st.integers(0, 99))
def test_every_record_is_in_half_of_the_models(pairs: int, records: int, seed: int) -> None:
    keep = balanced_design(2 * pairs, records, seed=seed)
    assert (keep.sum(axis=0) == pairs).all()


def test_memberships_of_different_records_are_independent() -> None:
    keep = balanced_design(16, 4000, seed=0)
    together = (keep[:, :2000] & keep[:, 2000:]).mean()
    assert together == pytest.approx(0.25, abs=0.01)


def test_an_odd_number_of_models_cannot_be_balanced() -> None:
    with pytest.raises(SettingError, match="even"):
        balanced_design(5, 10, seed=0)


def test_the_target_is_not_among_its_own_shadows(rng: np.random.Generator) -> None:
    signals = Signals.of(rng.normal(size=(4, 6)), balanced_design(4, 6, seed=0))
    for target, view in enumerate(signals.rounds()):
        assert view.shadows.shape == (3, 6)
        np.testing.assert_array_equal(view.phi, signals.phi[target])
        assert not (view.shadows == signals.phi[target]).all(axis=1).any()


def test_a_balanced_design_does_not_tell_the_targets_membership_by_counting() -> None:
    keep = balanced_design(6, 50, seed=1)
    for view in Signals.of(np.zeros(keep.shape), keep).rounds():
        assert (view.seen.sum(axis=0) == 2).all()
        assert (view.unseen.sum(axis=0) == 2).all()
        assert not (view.seen & view.unseen).any()


def test_float32_confidences_are_refused() -> None:
    with pytest.raises(DataError, match="float64"):
        Signals.of(np.zeros((2, 2), np.float32), np.zeros((2, 2), bool))  # type: ignore[arg-type]
