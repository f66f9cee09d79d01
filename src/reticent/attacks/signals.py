"""Signals: one number for each model and record, from which every score attack starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logsumexp

from reticent.attacks.intervals import Floats
from reticent.errors import DataError, SettingError

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.integer]


def confidence(logits: npt.ArrayLike, labels: npt.ArrayLike) -> Floats:
    """phi = log p_y - log(1 - p_y), as z_y - logsumexp of the other logits in float64 (Carlini et al. 2022).

    Going through the probabilities would lose every confident record: 1 - p_y is 0 in floating point.

    >>> confidence([[0.0, 0.0], [800.0, 0.0]], [0, 0])
    array([  0., 800.])
    """
    values = np.array(logits, dtype=np.float64)
    chosen = np.asarray(labels, dtype=np.int64)
    if values.ndim != 2 or values.shape[1] < 2:
        raise DataError(f"logits are records x classes with two classes or more, not {values.shape}")
    rows = np.arange(len(values))
    own = values[rows, chosen]
    values[rows, chosen] = -np.inf
    return own - np.asarray(logsumexp(values, axis=1), dtype=np.float64)


def loss(phi: Floats) -> Floats:
    """The cross-entropy that belongs to phi.

    >>> loss(np.array([0.0])).round(4)
    array([0.6931])
    """
    return np.logaddexp(0.0, -phi)


def probability(phi: Floats) -> Floats:
    """The probability of the true class that belongs to phi."""
    return np.asarray(expit(phi), dtype=np.float64)


def balanced_design(models: int, records: int, *, seed: int) -> Bools:
    """Which model is trained on which record: each record in exactly half of the models, at random.

    >>> balanced_design(4, 3, seed=0).sum(axis=0)
    array([2, 2, 2])
    """
    if models < 2 or models % 2:
        raise SettingError(f"a balanced design needs an even number of models, not {models}")
    order = np.random.default_rng(seed).random((models, records)).argsort(axis=0)
    return order.argsort(axis=0) < models // 2


def paired_design(models: int, records: int, *, seed: int) -> Bools:
    """A balanced design in which every model also has exactly half of the records: models come in opposite pairs.

    >>> paired_design(4, 6, seed=0).sum(axis=1)
    array([3, 3, 3, 3])
    """
    if models < 2 or models % 2 or records % 2:
        raise SettingError(f"pairs need even numbers of models and records, not {models} and {records}")
    rng = np.random.default_rng(seed)
    halves = [rng.permutation(records) < records // 2 for _ in range(models // 2)]
    return np.stack([side for half in halves for side in (half, ~half)])


@dataclass(frozen=True, eq=False)
class Signals:
    """The score matrix: phi of models x records, who was trained on what, and phi of records no model saw."""

    phi: Floats
    keep: Bools
    population: Floats

    def __post_init__(self) -> None:
        if self.phi.shape != self.keep.shape or len(self.population) != len(self.phi):
            shapes = f"phi {self.phi.shape}, keep {self.keep.shape}, population {self.population.shape}"
            raise DataError(f"phi and keep are models x records, population models x others; got {shapes}")
        if self.phi.dtype != np.float64:
            raise DataError(f"phi is float64, not {self.phi.dtype}: float32 ties the confident records")

    @staticmethod
    def of(phi: Floats, keep: Bools, population: Floats | None = None) -> Signals:
        """Signals with or without a population."""
        return Signals(phi, keep, np.empty((len(phi), 0)) if population is None else population)

    def rounds(self) -> Iterator[Round]:
        """Leave-one-out: every model is the target once, with the others as its shadows."""
        for target in range(len(self.phi)):
            yield self.round(target)

    def round(self, target: int) -> Round:
        """The view of an adversary who attacks one model and never counts it among the shadows.

        In a balanced design the others alone tell whether the target saw a record: one of them is missing on that side.
        So one model of the larger side is set aside for each record; else its count would leak into every spread.
        """
        others = np.arange(len(self.phi)) != target
        seen = self.keep[others]
        unseen = ~seen
        excess = seen.sum(axis=0) - unseen.sum(axis=0)
        if (np.abs(excess) == 1).all():
            larger = np.where(excess > 0, seen, unseen)
            lots = np.random.default_rng(target).random(seen.shape) * larger
            spare = np.arange(len(seen))[:, None] == lots.argmax(axis=0)
            seen, unseen = seen & ~spare, unseen & ~spare
        return Round(self.phi[target], self.phi[others], seen, unseen, self.population[target], self.population[others])


@dataclass(frozen=True, eq=False)
class Round:
    """What the adversary has against one target: its phi, and which shadows did and did not see each record.

    The target's own membership is not here, so no attack can be tuned on it.
    """

    phi: Floats
    shadows: Floats
    seen: Bools
    unseen: Bools
    population: Floats
    shadow_population: Floats
