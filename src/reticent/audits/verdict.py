"""The verdict: deterministic probes first, then the step with and without a canary, and one verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

from reticent.audits.findings import Finding, attempted
from reticent.audits.probes import probe_ledger, probe_noise, probe_sensitivity
from reticent.audits.sampling import probe_sampler
from reticent.audits.step import StepAudit, audit_step
from reticent.audits.toy import SIZE, is_adaptive
from reticent.errors import SettingError
from reticent.inside import RoundSettings
from reticent.methods import Method

PROBES: dict[str, Callable[[Method], Finding]] = {
    "sensitivity": probe_sensitivity,
    "noise": probe_noise,
    "sampler": probe_sampler,
    "ledger": probe_ledger,
}
RATES = (1.0, 0.5)
Verdict = Literal["consistent", "contradicted"]


@dataclass(frozen=True)
class Report:
    """Everything an audit found."""

    method: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    lower: float
    upper: float
    confidence: float
    delta: float

    @property
    def said_by(self) -> list[str]:
        """The probes that contradict the claim."""
        return [finding.probe for finding in self.findings if not finding.holds]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; an infinite number is null."""
        data = asdict(self)
        data["said_by"] = self.said_by
        return {name: _plain(value) for name, value in data.items()}


def _plain(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {name: _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
    return value


def audit(
    method: Method,
    *,
    runs: int = 2000,
    rates: Sequence[float] = RATES,
    alpha: float = 0.05,
    delta: float = 1e-5,
    seed: int | None = None,
    tell: Callable[[Finding], None] = lambda _finding: None,
) -> Report:
    """Look for anything that contradicts what a method's ledger claims; lower and upper are those of one full step.

    Promise: a method that keeps to its claim is contradicted with chance at most `alpha`, the probes' once in millions.
    """
    if not 0 < alpha < 1:
        raise SettingError(f"alpha is {alpha}: the chance of a false alarm must lie between 0 and 1")
    if seed is not None and seed < 0:
        raise SettingError(f"seed is {seed}: it must be 0 or more")
    if method.noise_multiplier is None and not is_adaptive(method):
        method = replace(method, noise_multiplier=1.0)
    RoundSettings(SIZE, SIZE, method.max_grad_norm, method.noise_multiplier or 0.0)  # refuses what no run could have
    looks: dict[str, Callable[[], Finding]] = {name: partial(probe, method) for name, probe in PROBES.items()}
    if is_adaptive(method):
        looks["step"] = _not_repeated
    else:
        share = alpha / len(rates)
        for rate in rates:
            name = f"step at rate {rate:g}"
            repeat = partial(audit_step, method, rate=rate, runs=runs, alpha=share, delta=delta, seed=seed)
            looks[name] = partial(_step_finding, name, repeat)
    findings = []
    for name, look in looks.items():
        findings.append(attempted(name, look))
        tell(findings[-1])
    if not any(finding.looked for finding in findings):
        raise SettingError(f"nothing could be looked at: {findings[0].says.removeprefix('not looked at: ')}")
    step = findings[len(PROBES)].figures
    verdict: Verdict = "consistent" if all(finding.holds for finding in findings) else "contradicted"
    lower, upper = step.get("lower", 0.0), step.get("upper", math.inf)
    return Report(method.name, verdict, tuple(findings), lower, upper, 1 - alpha, delta)


def _not_repeated() -> Finding:
    return Finding("step", True, "not repeated: its noise is chosen during the run; audit a run instead", looked=False)


def _step_finding(name: str, look: Callable[[], StepAudit]) -> Finding:
    found = look()
    claim = f"epsilon {found.upper:.3f}" if math.isfinite(found.upper) else "nothing"
    says = (
        f"{found.runs}+{found.runs} runs prove epsilon > {found.lower:.3f}, the step claims {claim} "
        f"(by counting {found.by_counting:.3f}; estimate under GDP {found.under_gdp:.3f})"
    )
    return Finding(name, found.contradiction is None, says, asdict(found))
