"""The second opinion: two accountants that share no code agree where both know the events, and say so where not."""

from __future__ import annotations

import pytest

from reticent.accounting import Concentrated, Event, Gaussian, Guarantee, Laplace, NoisyMax, Subsampled, price
from reticent.certificate.independent import MANY, second_opinion

PLAIN: list[dict[Event, int]] = [
    {Subsampled(0.034, Gaussian(2.15)): 1000},
    {Subsampled(0.01, Gaussian(1.0)): 1000},
    {Subsampled(0.5, Gaussian(2.0)): 10},
    {Subsampled(0.05, Gaussian(10.0)): 200},
    {Subsampled(0.1, Gaussian(8.0)): 1272, Gaussian(50.0): 1},
    {Subsampled(0.1, Gaussian(0.05)): 100},
    {Gaussian(8.0): 2, Laplace(5.0): 3},
]


@pytest.mark.parametrize("events", PLAIN, ids=str)
def test_the_accountants_lie_within_a_thousandth_of_each_other(events: dict[Event, int]) -> None:
    said = Guarantee.of(price(events, 1e-5))
    assert second_opinion(events, said) == pytest.approx(said.epsilon, rel=1e-3)


@pytest.mark.parametrize("event", [Concentrated(0.1), NoisyMax(0.1), Gaussian(0.0), Subsampled(0.1, Laplace(1.0))])
def test_what_it_does_not_know_it_does_not_judge(event: Event) -> None:
    assert "does not know" in str(second_opinion({event: 1}, Guarantee("proved", 1.0, 1e-5)))


def test_it_does_not_take_minutes() -> None:
    many: dict[Event, int] = {Gaussian(1.0 + number): 1 for number in range(MANY + 1)}
    assert "different events" in str(second_opinion(many, Guarantee("proved", 1.0, 1e-5)))
