"""Threshold attacks: population and reference (Ye et al. 2022); a threshold on the loss needs no more than phi."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reticent.attacks.intervals import Floats
from reticent.attacks.signals import Ints, Round, Signals
from reticent.errors import SettingError

RoundAttack = Callable[[Round], Floats]


def each_round(signals: Signals, attack: RoundAttack) -> Floats:
    """The score matrix of an attack that takes each model as its target in turn."""
    return np.stack([attack(view) for view in signals.rounds()])


def by_population(view: Round, labels: Ints | None = None, population_labels: Ints | None = None) -> Floats:
    """Population attack: the share of known non-members, of the same class if labels are given, with a larger loss.

    (Ye et al. 2022, attack P: member at level a iff the loss is below the a-quantile of the population's.)
    """
    if view.population.size == 0:
        raise SettingError("the population attack needs records that no model was trained on: hold some out")
    if labels is None or population_labels is None:
        return _share_below(view.population, view.phi)
    scores = np.empty_like(view.phi)
    for label in np.unique(labels):
        peers = view.population[population_labels == label]
        scores[labels == label] = _share_below(peers, view.phi[labels == label])
    return scores


def _share_below(population: Floats, values: Floats) -> Floats:
    if population.size == 0:
        raise SettingError("a class has no population record: use the population attack without labels")
    return np.asarray(np.searchsorted(np.sort(population), values, side="left") / len(population), dtype=np.float64)


def by_reference(view: Round) -> Floats:
    """Reference attack: the level at which the record's own threshold lies (Ye et al. 2022, attack R).

    The threshold of level a is the a-quantile of the record's loss over the models that did not see it: here its
    inverse, linear between the few models and saturating beyond the last, so that records do not tie.
    """
    outs = np.sort(np.where(view.unseen, view.shadows, np.nan), axis=0)  # NaN sorts to the end
    count = view.unseen.sum(axis=0)
    if (count == 0).any():
        raise SettingError("the reference attack needs a model without each record: train more models")
    below = (outs < view.phi).sum(axis=0)
    left = np.take_along_axis(outs, np.clip(below - 1, 0, None)[None], axis=0)[0]
    right = np.take_along_axis(outs, np.clip(below, None, count - 1)[None], axis=0)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        between = (view.phi - left) / (right - left)
    beyond = np.where(below == 0, view.phi - left, view.phi - right)
    tail = beyond / (1 + np.abs(beyond)) / 2
    position = np.where(below == 0, 0.5 + tail, np.where(below == count, count - 0.5 + tail, below - 0.5 + between))
    return np.asarray(position / count, dtype=np.float64)
