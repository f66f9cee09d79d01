"""The claimed-curve test: exact curves, a true claim survives, a false one does not, both tails count."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy import stats
from scipy.special import ndtr

from reticent.accounting import Gaussian, Subsampled, Unbounded, price
from reticent.attacks.permitted import permitted_tpr, permitted_tpr_gaussian
from reticent.audits.claims import Claim, contradiction, gaussian_claim, ledger_claim, promising_thresholds, step_claim
from reticent.audits.counts import Evidence

FPRS = [1e-4, 0.01, 0.1, 0.3, 0.5, 0.9]


@pytest.mark.parametrize(("rate", "noise"), [(0.5, 1.0), (0.1, 2.0), (0.05, 0.8), (1.0, 1.5)])
def test_the_step_claim_is_that_of_dp_accounting(rate: float, noise: float) -> None:
    pld = privacy_loss_distribution.from_gaussian_mechanism(
        noise, sampling_prob=rate, value_discretization_interval=1e-3
    )
    claim = step_claim(rate, noise)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0):
        ours = np.interp(epsilon, claim.epsilons, np.maximum(claim.present, claim.absent))
        assert ours == pytest.approx(pld.get_delta_for_epsilon(epsilon), rel=1e-2, abs=1e-9)


@pytest.mark.parametrize("fpr", FPRS)
def test_a_gaussian_claim_permits_exactly_its_curve(fpr: float) -> None:
    permitted = permitted_tpr_gaussian(np.array([fpr]), 1.3)[0]
    assert gaussian_claim(1.3).most_tpr(fpr) == pytest.approx(permitted, abs=1e-3)
    assert gaussian_claim(1.3).least_fpr(permitted) == pytest.approx(fpr, abs=1e-3)
    assert step_claim(1.0, 1 / 1.3).most_tpr(fpr) == pytest.approx(permitted, abs=1e-3)


@pytest.mark.parametrize("fpr", FPRS)
def test_one_point_of_epsilon_and_delta_permits_the_known_polygon(fpr: float) -> None:
    claim = Claim(np.array([1.0]), np.array([0.01]), np.array([0.01]))
    assert claim.most_tpr(fpr) == pytest.approx(permitted_tpr(np.array([fpr]), 1.0, 0.01)[0])


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0])
def test_the_curve_of_a_sampled_step_is_attained_by_its_best_test(rate: float) -> None:
    """Thresholding the released number is the optimal test, so its true rates lie on the curve, not inside it."""
    claim, noise = step_claim(rate, 1.2), 1.2
    for cut in np.linspace(-2, 4, 13):
        fpr = ndtr(-cut / noise)
        tpr = (1 - rate) * fpr + rate * ndtr((1 - cut) / noise)
        assert claim.most_tpr(fpr) == pytest.approx(tpr, abs=2e-3)


def sampled_step(rate: float, noise: float, runs: int, rng: np.random.Generator) -> Evidence:
    absent = noise * rng.normal(size=runs)
    return Evidence(absent, noise * rng.normal(size=runs) + (rng.random(runs) < rate))


def audited(evidence: Evidence, claim: Claim) -> bool:
    tried, judged = evidence.split(0.3)
    return contradiction(judged, claim, promising_thresholds(tried, claim)) is not None


@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_a_true_claim_is_contradicted_in_at_most_one_audit_of_twenty(rate: float, rng: np.random.Generator) -> None:
    claim = step_claim(rate, 1.0)
    wrong = sum(audited(sampled_step(rate, 1.0, 1000, rng), claim) for _ in range(500))
    assert stats.binomtest(wrong, 500, 0.05, alternative="greater").pvalue > 1e-3


def test_thresholds_from_the_certifying_runs_are_caught(rng: np.random.Generator) -> None:
    """The same coverage test rejects an auditor who does not split and does not correct for looking everywhere."""
    claim = step_claim(1.0, 1.0)
    wrong = 0
    for _ in range(500):
        evidence = sampled_step(1.0, 1.0, 1000, rng)
        alone = 0.05 * len(cuts := np.linspace(-2, 3, 120))  # as if each threshold were the only one
        wrong += contradiction(evidence, claim, cuts, alpha=alone) is not None
    assert stats.binomtest(wrong, 500, 0.05, alternative="greater").pvalue < 1e-3


@pytest.mark.parametrize(("rate", "noise"), [(1.0, 0.8), (0.5, 0.5), (0.8, 1.0)])
def test_too_little_noise_or_too_high_a_rate_is_contradicted(
    rate: float, noise: float, rng: np.random.Generator
) -> None:
    claimed = step_claim(1.0 if rate == 1.0 else 0.5, 1.0)
    assert audited(sampled_step(rate, noise, 20_000, rng), claimed)


def test_the_lower_tail_counts_too() -> None:
    """With the canary the lowest outputs never happen: only the test of "absent" shows it."""
    rng = np.random.default_rng(1)
    absent = rng.normal(size=4000)
    present = np.maximum(rng.normal(size=4000), -1.0)
    claim = Claim.of(lambda epsilons: np.where(epsilons < 0.5, 1.0, 0.0))
    found = contradiction(Evidence(absent, present), claim, [-1.0])
    assert found is not None
    assert found.fpr_at_most < 0.9


@pytest.mark.parametrize("count", [1, 30])
def test_the_claim_of_a_ledger_is_the_accountants(count: int) -> None:
    events = {Subsampled(0.1, Gaussian(1.5)): count, Gaussian(4.0): 1}
    claim = ledger_claim(events)
    assert claim is not None
    for delta in (1e-2, 1e-5, 1e-8):
        assert claim.epsilon(delta) == pytest.approx(price(events, delta, accountant="pld").epsilon, rel=2e-3)


def test_nothing_is_claimed_where_nothing_is_proved() -> None:
    assert ledger_claim({}) is None
    assert ledger_claim({Gaussian(1.0): 1, Unbounded("no proof"): 1}) is None
