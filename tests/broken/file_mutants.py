"""Mutants of what is stored: each forgets to look at something."""

from __future__ import annotations

from typing import Any

import file_checks as checks
from broken_mutants import Mutant, mutant

import reticent.accounting.entries as entries
import reticent.certificate.verifying as verifying
import reticent.opening as opening
from reticent.accounting.journal import Journal

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
