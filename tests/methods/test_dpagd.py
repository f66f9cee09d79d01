"""DPAGD: a gradient bought twice has the variance of what was paid for it in all; the best step wins."""

from __future__ import annotations

import pytest
import torch
from laws import Law

from reticent.accounting import Budget
from reticent.inside import BestOf, Everyone, StepScores
from reticent.outside import BestLength
from reticent.outside.dpagd import most_concentrated, noise_of, rho_of


def test_averaged_gradient_has_the_variance_of_its_whole_price() -> None:
    """(rho_old G + more G2) / (rho_old + more) has variance C^2 / (2 (rho_old + more))."""
    law = Law(torch.zeros(3, 20_000))
    gate, rho = BestLength(), 0.02
    proposal = law.proposal(torch.zeros(20_000))
    with law.vault.round(0):
        first = gate._again(proposal, noise_of(rho))
        more = gate.raise_by * rho
        again = (rho * first + more * gate._again(proposal, noise_of(more))) / (rho + more)
    assert again.var().item() == pytest.approx(1 / (2 * (rho + more)), rel=0.04)
    assert rho_of(noise_of(0.3)) == pytest.approx(0.3)


def test_the_best_length_wins_when_noise_is_small() -> None:
    """Loss = x at: along direction 1, longer is better until losses reach the cut at 0."""
    law = Law(torch.ones(50, 1))
    query = StepScores(law.task, torch.tensor([1.0]), torch.tensor([1.0]), (0.0, 0.5, 1.0), limit=3.0)
    with law.vault.round(0):
        sealed = law.vault.ask(query, law.vault.draw(Everyone(), law.settings))
        assert sealed._value.tolist() == pytest.approx([-50.0, -25.0, 0.0])
        assert law.vault.release(sealed, BestOf(epsilon=5.0)).item() == 2


@pytest.mark.parametrize(("epsilon", "rho"), [(1.0, 0.030557), (2.0, 0.108256), (4.0, 0.373144)])
def test_zcdp_afforded_by_a_budget(epsilon: float, rho: float) -> None:
    assert most_concentrated(Budget(epsilon, 1e-5))[1] == pytest.approx(rho, rel=2e-3)
