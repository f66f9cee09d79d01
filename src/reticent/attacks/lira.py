"""LiRA: the likelihood ratio of a record's confidence with and without it (Carlini et al. 2022)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from reticent.attacks.intervals import Floats
from reticent.attacks.signals import Bools, Round
from reticent.errors import SettingError

Variance = Literal["auto", "record", "global"]

MODELS_FOR_RECORD_VARIANCE = 64
"""From this many models a spread for each record is worth its own noise (Carlini et al. 2022)."""

SMALLEST_SPREAD = 1e-6
"""A record on which all shadows agree would otherwise have an infinite score."""


def lira_online(view: Round, variance: Variance = "auto") -> Floats:
    """log N(phi; in) - log N(phi; out), with shadows that did and did not see each record."""
    mean_in, spread_in = _fit(view.shadows, view.seen, variance, "with")
    mean_out, spread_out = _fit(view.shadows, view.unseen, variance, "without")
    return _log_normal(view.phi, mean_in, spread_in) - _log_normal(view.phi, mean_out, spread_out)


def lira_offline(view: Round, variance: Variance = "auto") -> Floats:
    """How far phi lies above what models without the record say, in standard deviations.

    The paper's 1 - P[N(out) > phi] is this z through the normal law: the same order, without its ties at 1.
    """
    mean_out, spread_out = _fit(view.shadows, view.unseen, variance, "without")
    return (view.phi - mean_out) / spread_out


def _fit(phi: Floats, chosen: Bools, variance: Variance, side: str) -> tuple[Floats, Floats]:
    """Mean and spread of each record over the chosen models; the global spread pools centred values."""
    count = chosen.sum(axis=0)
    if (count < 1).any():
        raise SettingError(f"LiRA needs a shadow model {side} each record: use a balanced design with 4 models or more")
    mean = np.where(chosen, phi, 0.0).sum(axis=0) / count
    squares = np.where(chosen, (phi - mean) ** 2, 0.0).sum(axis=0)
    by_record = variance == "record" or (variance == "auto" and len(phi) + 1 >= MODELS_FOR_RECORD_VARIANCE)
    if by_record:
        spread = np.sqrt(squares / np.maximum(count - 1, 1))
    else:
        spread = np.full_like(mean, np.sqrt(squares.sum() / max((count - 1).sum(), 1)))
    return mean, np.maximum(spread, SMALLEST_SPREAD)


def _log_normal(value: Floats, mean: Floats, spread: Floats) -> Floats:
    return -(((value - mean) / spread) ** 2) / 2 - np.log(spread)
