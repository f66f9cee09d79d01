"""Reticent: private deep learning in PyTorch, with an epsilon only where it is proved."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reticent import accounting, attacks, audits, data, gradients, losses, methods, models
    from reticent.accounting import Budget, Guarantee
    from reticent.budgets import DatasetLedger
    from reticent.certificate import verify
    from reticent.data import features
    from reticent.exporting import export
    from reticent.fitting import fit
    from reticent.normalised import normalise
    from reticent.run import Run
    from reticent.standing import Step
    from reticent.trained import Trained, load
    from reticent.tuning import Tuned, tune, tune_on_public

# Loaded when first used: `import reticent` and the commands that only count must not wait for torch.
_HOME = {
    "Budget": "reticent.accounting",
    "DatasetLedger": "reticent.budgets",
    "Guarantee": "reticent.accounting",
    "Run": "reticent.run",
    "Step": "reticent.standing",
    "Trained": "reticent.trained",
    "Tuned": "reticent.tuning",
    "export": "reticent.exporting",
    "features": "reticent.data",
    "fit": "reticent.fitting",
    "load": "reticent.trained",
    "normalise": "reticent.normalised",
    "tune": "reticent.tuning",
    "tune_on_public": "reticent.tuning",
    "verify": "reticent.certificate",
}
_ROOMS = ("accounting", "attacks", "audits", "data", "gradients", "losses", "methods", "models")

__all__ = [
    "Budget",
    "DatasetLedger",
    "Guarantee",
    "Run",
    "Step",
    "Trained",
    "Tuned",
    "accounting",
    "attacks",
    "audits",
    "data",
    "export",
    "features",
    "fit",
    "gradients",
    "load",
    "losses",
    "methods",
    "models",
    "normalise",
    "tune",
    "tune_on_public",
    "verify",
]
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"reticent.{name}")
    raise AttributeError(f"module 'reticent' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
