"""Attacks: what a model gives away about its training examples; attacks end in scores, metrics only see scores."""

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
    permitted_accuracy,
    permitted_auc_gaussian,
    permitted_tpr,
    permitted_tpr_gaussian,
)
from reticent.attacks.ranking import Exposed, exposure, most_exposed
from reticent.attacks.rmia import rmia_matrix, rmia_offline, rmia_online
from reticent.attacks.signals import Round, Signals, balanced_design, confidence
from reticent.attacks.summary import Summary, summarise
from reticent.attacks.thresholds import by_loss, by_population, by_reference, by_shadow, each_round

__all__ = [
    "Accuracy",
    "Exposed",
    "Roc",
    "Round",
    "Scores",
    "Signals",
    "Summary",
    "TprAtFpr",
    "auc",
    "auc_interval",
    "balanced_accuracy",
    "balanced_design",
    "blind",
    "by_loss",
    "by_population",
    "by_reference",
    "by_shadow",
    "confidence",
    "cross_fitted",
    "each_round",
    "exposure",
    "lira_offline",
    "lira_online",
    "most_exposed",
    "permitted_accuracy",
    "permitted_auc_gaussian",
    "permitted_tpr",
    "permitted_tpr_gaussian",
    "posterior_features",
    "rmia_matrix",
    "rmia_offline",
    "rmia_online",
    "roc",
    "summarise",
    "tpr_at_fpr",
    "transferred",
]
