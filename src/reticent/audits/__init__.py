"""Audits: how much privacy the runs themselves contradict; a guarantee is an upper bound, this is the lower one."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from reticent.audits.bounds import epsilon_credible
from reticent.audits.by_name import audit_method
from reticent.audits.canaries import judge_one_run
from reticent.audits.claims import Claim
from reticent.audits.diagnosis import Diagnosis, doctor
from reticent.audits.findings import Finding
from reticent.audits.one_run import contradicts, guess
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
    "Diagnosis",
    "Finding",
    "Report",
    "RunReport",
    "audit",
    "audit_method",
    "audit_run",
    "contradicts",
    "doctor",
    "epsilon_credible",
    "guess",
    "judge_one_run",
]
