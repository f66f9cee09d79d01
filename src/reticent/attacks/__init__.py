"""Attacks: what a model gives away about its training examples; attacks end in scores, metrics only see scores."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from reticent.attacks.batched import ShadowRecipe, train_together
from reticent.attacks.game import Deal, Game, deal
from reticent.attacks.learned import blind, cross_fitted, posterior_features, transferred
from reticent.attacks.lira import lira_offline, lira_online
from reticent.attacks.metrics import (
    Accuracy,
    Roc,
    Scores,
    TprAtFpr,
    auc,
    auc_interval,
    balanced_accuracy,
    roc,
    tpr_at_fpr,
)
from reticent.attacks.permitted import (
    exceeds,
    permitted_accuracy,
    permitted_auc_gaussian,
    permitted_tpr,
    permitted_tpr_gaussian,
)
from reticent.attacks.pictures import Curve, Histogram, histogram, thinned_roc
from reticent.attacks.ranking import Exposed, exposure, most_exposed
from reticent.attacks.rmia import rmia_matrix, rmia_offline, rmia_online
from reticent.attacks.salem import black_box
from reticent.attacks.shadows import train_shadows
from reticent.attacks.signals import Round, Signals, balanced_design, confidence, paired_design
from reticent.attacks.suite import ATTACKS, Target, run_attack
from reticent.attacks.summary import Summary, summarise
from reticent.attacks.thresholds import by_loss, by_population, by_reference, by_shadow, each_round
from reticent.attacks.whitebox import layer_norms, logits_of, white_box_features

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
    "Curve",
    "Deal",
    "Exposed",
    "Game",
    "Histogram",
    "Roc",
    "Round",
    "Scores",
    "ShadowRecipe",
    "Signals",
    "Summary",
    "Target",
    "TprAtFpr",
    "attack_run",
    "auc",
    "auc_interval",
    "balanced_accuracy",
    "balanced_design",
    "black_box",
    "blind",
    "by_loss",
    "by_population",
    "by_reference",
    "by_shadow",
    "confidence",
    "cross_fitted",
    "deal",
    "each_round",
    "exceeds",
    "exposure",
    "histogram",
    "layer_norms",
    "lira_offline",
    "lira_online",
    "logits_of",
    "most_exposed",
    "paired_design",
    "permitted_accuracy",
    "permitted_auc_gaussian",
    "permitted_tpr",
    "permitted_tpr_gaussian",
    "posterior_features",
    "rmia_matrix",
    "rmia_offline",
    "rmia_online",
    "roc",
    "run_attack",
    "summarise",
    "thinned_roc",
    "tpr_at_fpr",
    "train_shadows",
    "train_together",
    "transferred",
    "white_box_features",
]
