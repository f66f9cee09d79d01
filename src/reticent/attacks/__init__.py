"""Attacks: what a model gives away about its training examples; attacks end in scores, metrics only see scores."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from reticent.attacks.batched import ShadowRecipe, train_together
from reticent.attacks.game import Deal, Game, deal
from reticent.attacks.learned import blind
from reticent.attacks.lira import lira_online
from reticent.attacks.metrics import Accuracy, Scores, auc, roc
from reticent.attacks.permitted import exceeds, permitted_accuracy
from reticent.attacks.pictures import histogram
from reticent.attacks.ranking import Exposed, most_exposed
from reticent.attacks.shadows import train_shadows
from reticent.attacks.signals import Round, Signals, balanced_design, confidence
from reticent.attacks.suite import ATTACKS, Target, run_attack
from reticent.attacks.summary import Summary, summarise
from reticent.attacks.thresholds import each_round
from reticent.attacks.whitebox import logits_of

if TYPE_CHECKING:
    from reticent.experiments.attacking import AttackReport, attack_run
else:

    def __getattr__(name: str) -> object:
        """What repeats a whole run takes rooms above this one: they are loaded when it is first asked for."""
        if name in ("AttackReport", "attack_run"):
            return getattr(importlib.import_module("reticent.experiments.attacking"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ATTACKS",
    "Accuracy",
    "AttackReport",
    "Deal",
    "Exposed",
    "Game",
    "Round",
    "Scores",
    "ShadowRecipe",
    "Signals",
    "Summary",
    "Target",
    "attack_run",
    "auc",
    "balanced_design",
    "blind",
    "confidence",
    "deal",
    "each_round",
    "exceeds",
    "histogram",
    "lira_online",
    "logits_of",
    "most_exposed",
    "permitted_accuracy",
    "roc",
    "run_attack",
    "summarise",
    "train_shadows",
    "train_together",
]
