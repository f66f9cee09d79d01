"""SA-DPSGD (Fu et al. 2022): DP-SGD that keeps or drops updates by simulated annealing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from reticent.about import VALIDATION, About
from reticent.errors import SettingError
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd
from reticent.outside import Annealed, PrivateAnswer, PublicHoldout


def sa_dpsgd(
    *,
    noise_multiplier: float | None = None,
    max_grad_norm: float = 0.1,
    holdout: Any = None,
    holdout_is_public: bool = False,
    judge_on_test: bool = False,
    cooling: float = 10.0,
    max_rejections: int = 10,
    hidden_attempts: bool = False,
    validation_batch_size: float = 256,
    validation_noise: float = 1.3,
    loss_limit: float = 0.001,
) -> Method:
    """Simulated annealing over noisy updates (Fu et al. 2022, algorithm 2).

    `holdout` is an (x, y) of public examples, which must be said with `holdout_is_public=True`; it may not be the set
    that accuracy is reported on, unless `judge_on_test` admits it, as in the paper. Without one, the training examples
    judge, through the door and charged.

    >>> sa_dpsgd(noise_multiplier=2.0).gate.judge
    PrivateAnswer(batch_size=256, noise_multiplier=1.3, limit=0.001)
    """
    if holdout is None:
        if judge_on_test:
            raise SettingError("judge_on_test says that the hold-out is the test set: give that as holdout")
        judge: PublicHoldout | PrivateAnswer = PrivateAnswer(validation_batch_size, validation_noise, loss_limit)
    elif holdout_is_public:
        x, y = holdout
        judge = PublicHoldout(torch.as_tensor(x), torch.as_tensor(y), judge_on_test)
    else:
        raise SettingError(
            "sa_dpsgd asks its hold-out without noise, so its examples get no privacy at all: say "
            "holdout_is_public=True if they are public, or give none, and the training examples judge through the door"
        )
    base = dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    return replace(base, name="sa_dpsgd", gate=Annealed(judge, cooling, max_rejections, hidden_attempts))


ABOUT = About(
    name="sa_dpsgd",
    make=sa_dpsgd,
    title="SA-DPSGD",
    paper="Fu et al. 2022, SA-DPSGD: Differentially Private SGD Based on Simulated Annealing",
    changes="gate: keep or drop by simulated annealing",
    guarantee="proved: every attempt is charged; kept updates only on request (R_SA); the paper's own is refuted",
    equations={
        "eq. 3": "outside/sa_dpsgd.py Annealed.chance",
        "algorithm 2, lines 11-20": "outside/sa_dpsgd.py Annealed",
        "theorem 1 (refuted)": "accounting/claims/claimed.py",
    },
    options=VALIDATION
    | {
        "holdout": "public examples (x, y) that judge; never the set accuracy is reported on",
        "holdout_is_public": "must be said: they get no privacy",
        "judge_on_test": "the test examples judge, as in the paper: accuracy on them is then no estimate of anything",
        "cooling": "initial temperature (Q0)",
        "max_rejections": "kept for certain after so many rejections in a row (mu0)",
        "hidden_attempts": "charge kept updates only; attempts, timing and logs must stay private",
    },
)
