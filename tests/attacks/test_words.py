"""The verdict in words: found, not found, beyond the guarantee, and a split that shows by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reticent.attacks import Scores, Summary, summarise
from reticent.attacks.verdict import Beside, better_than_guessing, verdict


def scores(apart: float, count: int = 400, name: str = "lira", seed: int = 0) -> Summary:
    rng = np.random.default_rng(seed)
    return summarise(name, Scores(rng.normal(apart, 1, count), rng.normal(0, 1, count)))


BLIND = scores(0.0, name="blind", seed=5)


def test_nothing_found_says_how_much_there_could_have_been() -> None:
    said = verdict([scores(0.0), scores(0.0, name="loss", seed=1)], Beside(BLIND), 1.0, 1e-5)
    assert said.startswith("No attack did better than guessing: at 1 % false alarms, at most ")
    assert said.endswith("of the members could have been found (95 % confidence), and the guarantee permits 2.7 %.")


def test_what_was_found_is_named() -> None:
    said = verdict([scores(0.0), scores(1.0, name="loss")], Beside(BLIND), math.inf, 1e-5)
    assert said.startswith("Membership shows: loss did better than guessing; at 1 % false alarms, at most ")
    assert said.endswith("and no guarantee limits it.")


def test_an_attack_beyond_the_guarantee_is_an_alarm() -> None:
    said = verdict([scores(3.0)], Beside(BLIND, beyond=("lira",)), 0.1, 1e-5)
    assert said.startswith("ALARM: lira did better than the guarantee permits")
    assert "Membership shows" in said


def test_members_that_differ_by_themselves_are_no_fault_of_the_model() -> None:
    said = verdict([scores(1.0)], Beside(scores(1.0, name="blind")), 3.0, 1e-5)
    assert "Members differ from others by themselves" in said
    assert "differ" not in verdict([scores(0.0)], Beside(scores(1.0, name="blind")), 3.0, 1e-5)


def test_canaries_that_show_are_told() -> None:
    assert "Canaries" in verdict([scores(0.0)], Beside(BLIND, scores(1.0, name="canaries")), 3.0, 1e-5)


def test_too_few_records_for_rates_are_told_in_pairs() -> None:
    said = verdict([scores(0.0, count=30)], Beside(BLIND), 1.0, 1e-5)
    assert "shown a member and another, the right one is picked at most " in said


def test_guessing_is_called_better_as_seldom_as_is_said() -> None:
    """2,000 attacks that guess: at level 5 %, a share between 3.5 and 6.5 % seems better."""
    rng = np.random.default_rng(0)
    blank = scores(0.0, count=40)
    from dataclasses import replace

    from reticent.attacks import auc

    aucs = [auc(Scores(rng.normal(size=40), rng.normal(size=40))) for _ in range(2000)]
    share = np.mean([better_than_guessing(replace(blank, auc=value), 0.05) for value in aucs])
    assert 0.035 < share < 0.065


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_guarantee_is_in_the_sentence(epsilon: float) -> None:
    permitted = 100 * min(math.exp(epsilon) * 0.01 + 1e-5, 1.0)
    assert f"the guarantee permits {permitted:.1f} %." in verdict([scores(0.0)], Beside(BLIND), epsilon, 1e-5)
