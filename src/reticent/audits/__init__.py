"""Audits: how much privacy the runs themselves contradict; a guarantee is an upper bound, this is the lower one."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from reticent.audits.bounds import epsilon_credible, epsilon_lower, epsilon_under_gdp, mu_lower
from reticent.audits.by_name import audit_method
from reticent.audits.canaries import OneRun, judge_one_run
from reticent.audits.claims import (
    Claim,
    Contradiction,
    contradiction,
    gaussian_claim,
    ledger_claim,
    promising_thresholds,
    step_claim,
)
from reticent.audits.counts import Counts, Evidence
from reticent.audits.diagnosis import Diagnosis, doctor
from reticent.audits.findings import Finding
from reticent.audits.gaussian import gdp_delta, gdp_epsilon
from reticent.audits.one_run import Guesses, contradicts, epsilon_one_run, epsilon_one_run_gdp, guess, mu_one_run
from reticent.audits.step import StepAudit, audit_step
from reticent.audits.verdict import Bounds, Report, RunReport, audit

if TYPE_CHECKING:
    from reticent.experiments.auditing import audit_run
else:

    def __getattr__(name: str) -> object:
        """What repeats a whole run takes rooms above this one: they are loaded when it is first asked for."""
        if name == "audit_run":
            return getattr(importlib.import_module("reticent.experiments.auditing"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Bounds",
    "Claim",
    "Contradiction",
    "Counts",
    "Diagnosis",
    "Evidence",
    "Finding",
    "Guesses",
    "OneRun",
    "Report",
    "RunReport",
    "StepAudit",
    "audit",
    "audit_method",
    "audit_run",
    "audit_step",
    "contradiction",
    "contradicts",
    "doctor",
    "epsilon_credible",
    "epsilon_lower",
    "epsilon_one_run",
    "epsilon_one_run_gdp",
    "epsilon_under_gdp",
    "gaussian_claim",
    "gdp_delta",
    "gdp_epsilon",
    "guess",
    "judge_one_run",
    "ledger_claim",
    "mu_lower",
    "mu_one_run",
    "promising_thresholds",
    "step_claim",
]
