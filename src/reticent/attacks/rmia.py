"""RMIA: how many population records does a record beat, each measured by its gain over reference models."""

from __future__ import annotations

import numpy as np

from reticent.attacks.intervals import Floats
from reticent.attacks.metrics import Scores, auc
from reticent.attacks.signals import Bools, Round, Signals, probability
from reticent.errors import SettingError

OFFLINE_GRID = tuple(round(0.1 * i, 1) for i in range(11))


def rmia_online(view: Round, gamma: float = 1.0) -> Floats:
    """RMIA with p(x) averaged over models with and without the record (Zarifzadeh et al. 2024)."""
    p = probability(view.shadows)
    usual = (_mean(p, view.seen) + _mean(p, view.unseen)) / 2
    usual_z = probability(view.shadow_population).mean(axis=0)
    return _beaten(_gain(view.phi, usual), _gain(view.population, usual_z), gamma)


def rmia_offline(view: Round, offline_a: float, gamma: float = 1.0) -> Floats:
    """RMIA with models that did not see the record: p(x) = ((1+a) p_out(x) + 1 - a) / 2 (Zarifzadeh et al. 2024)."""
    usual = _lift(_mean(probability(view.shadows), view.unseen), offline_a)
    usual_z = _lift(probability(view.shadow_population).mean(axis=0), offline_a)
    return _beaten(_gain(view.phi, usual), _gain(view.population, usual_z), gamma)


def best_offline_a(shadows: Signals, stand_in: int = 0) -> float:
    """The `a` that attacks one of the shadows best, with the others as its references."""
    view, keep = shadows.round(stand_in), shadows.keep[stand_in]
    return max(OFFLINE_GRID, key=lambda a: auc(Scores.of(rmia_offline(view, a), keep)))


def _gain(phi: Floats, usual: Floats) -> Floats:
    """The probability over what it usually is; records that every model is sure are wrong have no gain."""
    return probability(phi) / np.maximum(usual, np.finfo(np.float64).tiny)


def _lift(p_out: Floats, offline_a: float) -> Floats:
    return ((1 + offline_a) * p_out + 1 - offline_a) / 2


def _mean(values: Floats, chosen: Bools) -> Floats:
    count = chosen.sum(axis=0)
    if (count < 1).any():
        raise SettingError("RMIA needs a reference model for each record: use a balanced design with 4 models or more")
    return np.asarray(np.where(chosen, values, 0.0).sum(axis=0) / count, dtype=np.float64)


def _beaten(ratio: Floats, population: Floats, gamma: float) -> Floats:
    """The share of population ratios z with ratio / z >= gamma."""
    if population.size == 0:
        raise SettingError("RMIA needs records that no model was trained on: hold some out as the population")
    ordered = np.sort(population)
    return np.asarray(np.searchsorted(ordered, ratio / gamma, side="right") / len(ordered), dtype=np.float64)
