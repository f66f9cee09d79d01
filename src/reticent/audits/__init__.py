"""Audits: how much privacy the runs themselves contradict; a guarantee is an upper bound, this is the lower one."""

from reticent.audits.bounds import epsilon_credible, epsilon_lower, epsilon_under_gdp, mu_lower
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
from reticent.audits.findings import Finding
from reticent.audits.gaussian import gdp_delta, gdp_epsilon
from reticent.audits.one_run import Guesses, contradicts, epsilon_one_run, epsilon_one_run_gdp, guess, mu_one_run
from reticent.audits.step import StepAudit, audit_step
from reticent.audits.verdict import Report, audit

__all__ = [
    "Claim",
    "Contradiction",
    "Counts",
    "Evidence",
    "Finding",
    "Guesses",
    "OneRun",
    "Report",
    "StepAudit",
    "audit",
    "audit_step",
    "contradiction",
    "contradicts",
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
