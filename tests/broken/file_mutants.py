"""Mutants of what is stored: each forgets to look at something."""

from __future__ import annotations

from typing import Any

import file_checks as checks
from broken_mutants import Mutant, mutant

import reticent.accounting.entries as entries
import reticent.certificate.verifying as verifying
import reticent.opening as opening
from reticent.accounting import Guarantee
from reticent.accounting.journal import Journal
from reticent.inside.careful import OneByOne

MUTANTS: list[Mutant] = []


@mutant(entries, "unframe", checks.a_changed_ledger_is_not_read, MUTANTS)
def hashes_are_not_compared(_right: Any) -> Any:
    return lambda line, _before: b"{" + line.split(b'",', 1)[1]


@mutant(Journal, "_mend", checks.failed_writes_leave_one_line_for_each_place, MUTANTS)
def half_lines_are_left_there(_right: Any) -> Any:
    return lambda self, _file: None


@mutant(opening, "refuse_other_ledger", checks.a_run_goes_on_with_its_own_ledger_only, MUTANTS)
def any_ledger_will_do(_right: Any) -> Any:
    return lambda ledger, stored, plan: None


@mutant(verifying, "digest_of", checks.other_weights_do_not_get_the_guarantee, MUTANTS)
def files_are_not_hashed(_right: Any) -> Any:
    return lambda path: verifying.read_card(path.parent).files[path.name]


@mutant(Guarantee, "time_is_private", checks.the_clock_is_not_told_of_hidden_attempts, MUTANTS)
def every_run_tells_how_long_it_took(_right: Any) -> Any:
    return property(lambda self: False)


@mutant(OneByOne, "alone", checks.nobody_hears_of_a_bad_record, MUTANTS)
def a_plan_is_made_for_a_bad_record(_right: Any) -> Any:
    return False
