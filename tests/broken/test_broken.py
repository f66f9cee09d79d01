"""Every broken variant is caught by at least one fast check or probe; the right build passes all of them."""

from __future__ import annotations

from collections.abc import Callable

import ahead_checks
import ahead_mutants
import band_checks
import band_mutants
import broken_checks
import broken_mutants
import budget_checks
import budget_mutants
import clip_checks
import clip_mutants
import draw_checks
import draw_mutants
import file_checks
import file_mutants
import filter_checks
import filter_mutants
import guard_checks
import guard_mutants
import layer_checks
import layer_mutants
import loss_checks
import loss_mutants
import noise_checks
import noise_mutants
import opacus_checks
import opacus_mutants
import people_checks
import people_mutants
import pytest
import rank_checks
import rank_mutants
import rule_checks
import rule_mutants
import statistics_checks
import statistics_mutants
import stream_checks
import stream_mutants
import view_checks
import view_mutants
from broken_mutants import Mutant

from reticent.audits.findings import attempted
from reticent.audits.verdict import PROBES
from reticent.inside.planted import Bug, bugs
from reticent.methods import dpsgd

KINDS = (
    (broken_checks, broken_mutants),
    (noise_checks, noise_mutants),
    (file_checks, file_mutants),
    (budget_checks, budget_mutants),
    (loss_checks, loss_mutants),
    (guard_checks, guard_mutants),
    (people_checks, people_mutants),
    (ahead_checks, ahead_mutants),
    (rank_checks, rank_mutants),
    (opacus_checks, opacus_mutants),
    (clip_checks, clip_mutants),
    (rule_checks, rule_mutants),
    (filter_checks, filter_mutants),
    (layer_checks, layer_mutants),
    (view_checks, view_mutants),
    (band_checks, band_mutants),
    (draw_checks, draw_mutants),
    (statistics_checks, statistics_mutants),
    (stream_checks, stream_mutants),
)
MUTANTS = [mutant for _, mutants in KINDS for mutant in mutants.MUTANTS]
CHECKS = [check for checks, _ in KINDS for check in checks.CHECKS]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_right_build_passes(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_caught(mutant: Mutant) -> None:
    with mutant.planted(), pytest.raises(AssertionError):
        mutant.caught_by()


@pytest.mark.parametrize("bug", bugs(), ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught_by_a_probe(bug: Bug) -> None:
    method = dpsgd(noise_multiplier=1.0)
    with bug.planted():
        found = (attempted(name, lambda probe=probe: probe(method)) for name, probe in PROBES.items())
        assert any(not finding.holds for finding in found)


def test_there_are_enough_of_them() -> None:
    assert len(bugs()) >= 10
    assert len(MUTANTS) + len(bugs()) >= 30
    names = [one.name for one in [*MUTANTS, *bugs()]]
    assert len(set(names)) == len(names)


def test_a_bug_is_gone_when_it_is_lifted() -> None:
    for bug in bugs():
        right = bug.owner.__dict__[bug.attribute]
        with bug.planted():
            assert bug.owner.__dict__[bug.attribute] is not right
        assert bug.owner.__dict__[bug.attribute] is right
