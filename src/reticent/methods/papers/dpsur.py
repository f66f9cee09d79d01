"""DPSUR (Fu et al. 2024): DP-SGD that keeps an update only if a noisy validation test says that it helps."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import VALIDATION, About
from reticent.errors import UnknownName
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd
from reticent.outside import After, Gate, NoisyTest, Selective, SmoothTest


def dpsur(
    *,
    noise_multiplier: float | None = None,
    max_grad_norm: float = 0.1,
    test: str = "noisy",
    validation_batch_size: float = 256,
    validation_noise: float = 1.3,
    beta: float = -1.0,
    loss_limit: float | None = None,
    accept_low: float = 0.4,
    accept_high: float = 0.75,
    influence: float = 0.05,
    hidden_attempts: bool = False,
    cap: int = 300,
    seen_attempts: bool = False,
    keep_state: bool = False,
    after: int = 0,
) -> Method:
    """Selective update and release (Fu et al. 2024, algorithm 2); `test="smooth"` is our cheaper test.

    `after` rounds of plain DP-SGD come first; `hidden_attempts` charges kept updates only, by route C, `seen_attempts`
    gradient and test of every attempt as they are, and so does `keep_state`, which lets the optimizer remember rejected
    gradients.

    >>> dpsur(noise_multiplier=2.0).gate.test.noise_multiplier
    1.3
    """
    match test:
        case "noisy":
            chosen: NoisyTest | SmoothTest = NoisyTest(
                validation_batch_size, validation_noise, 0.001 if loss_limit is None else loss_limit, beta
            )
        case "smooth":
            limit = 0.1 if loss_limit is None else loss_limit
            chosen = SmoothTest(validation_batch_size, accept_low, accept_high, limit, influence)
        case _:
            raise UnknownName("test", test, ["noisy", "smooth"])
    gate: Gate = Selective(chosen, hidden_attempts, cap, seen_attempts, keep_state)
    base = dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    return replace(base, name="dpsur", gate=After(after, gate) if after else gate)


ABOUT = About(
    name="dpsur",
    make=dpsur,
    title="DPSUR",
    paper="Fu et al. 2024, DPSUR: Accelerating Differentially Private SGD Using Selective Update and Release",
    changes="gate: keep what a noisy validation test accepts",
    guarantee="proved: every attempt is charged, kept ones only on request; the paper's own rule is refuted",
    equations={
        "algorithm 2, lines 9-14": "outside/dpsur.py NoisyTest",
        "algorithm 2, lines 15-18": "outside/trial.py Trial",
        "theorem 5.6 (refuted)": "accounting/claims/claimed.py",
    },
    options=VALIDATION
    | {
        "test": "noisy: the paper's; smooth: ours, cheaper in privacy",
        "beta": "keep if the noisy change is under beta x loss_limit",
        "accept_low": "smooth test: least chance to be kept",
        "accept_high": "smooth test: greatest chance to be kept",
        "influence": "smooth test: how far one example moves the logarithm of the chance",
        "hidden_attempts": "charge kept updates only (route C); attempts, timing and logs must stay private",
        "cap": "hidden attempts: the most for one kept update",
        "seen_attempts": "charge gradient and test of every attempt in full (route F); all of it may be seen",
        "keep_state": "the optimizer remembers rejected gradients, as in the authors' code (route F)",
        "after": "rounds of plain DP-SGD first (late selection)",
    },
)
