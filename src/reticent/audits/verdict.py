"""The verdict: deterministic probes first, then the step with and without a canary, and one verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Literal

from reticent.accounting.guarantee import round_up
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
Tell = Callable[[Finding], None]
"""Is told of each finding as soon as there is one."""


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

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if self.said_by:
            return f"The claim is contradicted, by {', '.join(self.said_by)}: do not rely on this guarantee."
        claimed = f"at most {round_up(self.upper)} is claimed" if math.isfinite(self.upper) else "nothing is claimed"
        shown = f"epsilon of at least {self.lower:.2f}" if self.lower >= 0.005 else "no epsilon above 0"
        return (
            f"Nothing contradicts the claim: {shown} could be shown, and {claimed} "
            f"({100 * self.confidence:g} % confidence). That nothing was found does not prove that there is nothing."
        )

    def to_json(self) -> dict[str, object]:
        """Plain JSON data; an infinite number is null."""
        data = asdict(self) | {"said_by": self.said_by, "sentence": self.sentence}
        return {name: _plain(value) for name, value in data.items()}


@dataclass(frozen=True)
class Bounds:
    """What is shown of epsilon, and what is claimed."""

    lower: float
    upper: float
    delta: float


@dataclass(frozen=True, kw_only=True)
class RunReport(Report):
    """Everything an audit of a stored run found; lower and upper are those of what `name` says."""

    run: str
    name: str
    step: Bounds
    """Of one full step of the method with the run's numbers."""


def _plain(value: object) -> object:
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
    tell: Tell = lambda _finding: None,
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
    steps: dict[float, StepAudit] = {}
    if is_adaptive(method):
        looks["step"] = _not_repeated
    else:
        share = alpha / len(rates)
        for rate in rates:
            repeat = partial(audit_step, method, rate=rate, runs=runs, alpha=share, delta=delta, seed=seed)
            looks[f"step at rate {rate:g}"] = partial(_step_finding, rate, repeat, steps)
    findings = []
    for name, look in looks.items():
        findings.append(attempted(name, look))
        tell(findings[-1])
    if not any(finding.looked for finding in findings):
        raise SettingError(f"nothing could be looked at: {findings[0].says.removeprefix('not looked at: ')}")
    step = steps.get(rates[0])
    lower, upper = (0.0, math.inf) if step is None else (step.lower, step.upper)
    return Report(method.name, verdict_of(findings), tuple(findings), lower, upper, 1 - alpha, delta)


def verdict_of(findings: Sequence[Finding]) -> Verdict:
    """What findings say together.

    >>> verdict_of([Finding("noise", True, "as it should be"), Finding("ledger", False, "a release is missing")])
    'contradicted'
    """
    return "consistent" if all(finding.holds for finding in findings) else "contradicted"


def _not_repeated() -> Finding:
    return Finding("step", True, "not repeated: its noise is chosen during the run; audit a run instead", looked=False)


def _step_finding(rate: float, look: Callable[[], StepAudit], steps: dict[float, StepAudit]) -> Finding:
    found = steps[rate] = look()
    claim = f"epsilon {found.upper:.3f}" if math.isfinite(found.upper) else "nothing"
    says = (
        f"{found.runs}+{found.runs} runs prove epsilon > {found.lower:.3f}, the step claims {claim} "
        f"(by counting {found.by_counting:.3f}; estimate under GDP {found.under_gdp:.3f})"
    )
    return Finding(f"step at rate {rate:g}", found.contradiction is None, says, asdict(found))
