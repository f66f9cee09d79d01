"""Private statistics in one line: what a model is normalised by is released with noise, and charged to its run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from reticent.accounting import Budget, Event, Gaussian
from reticent.accounting.calibrate import least_noise
from reticent.beforehand import release_once
from reticent.data.features.statistics import release_moments
from reticent.errors import SettingError, require
from reticent.filled import fill
from reticent.inside import Persons, Store, Vault
from reticent.models.normalising import Fill, PublicNormalise
from reticent.models.presence import PresenceLinear
from reticent.models.whitening import whiten_of
from reticent.weighed import weigh
from reticent.whitened import whiten

RELEASES = 2
"""The means of the channels, and the means of their squares."""


@dataclass(frozen=True, eq=False)
class Normalised:
    """Examples whose means and deviations `rt.fit` releases before training, to normalise what the model sees."""

    examples: Any
    budget_share: float | None
    noise_multiplier: float | None
    low: float
    high: float
    whiten: bool = False

    def noise(self, budget: Budget | None, releases: int = RELEASES) -> float:
        """The noise multiplier of the releases: released alone, they would cost the share of the budget."""
        if self.noise_multiplier is not None:
            return self.noise_multiplier
        if budget is None:
            raise SettingError("budget_share is a share of epsilon: give rt.fit an epsilon, or a noise_multiplier here")
        share = Budget(budget.epsilon * (self.budget_share or 0.0), budget.delta, budget.accountant, budget.adjacency)
        return least_noise(lambda noise: {Gaussian(noise): releases}, share)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A model as a run takes it, what must be charged to that, and what is released once it is planned."""

    model: nn.Module
    already: tuple[Event, ...] = ()
    about: dict[str, object] = field(default_factory=dict)
    release: Callable[[int | None, int | None, str | Path | None], None] = lambda _size, _seed, _folder: None


def normalise(
    examples: Any,
    *,
    budget_share: float | None = None,
    noise_multiplier: float | None = None,
    low: float = 0.0,
    high: float = 1.0,
    whiten: bool = False,
) -> Normalised:
    """Normalise each channel (or column) by its mean and deviation, released with noise and charged to the run.

    `budget_share` is the share of the run's epsilon that the statistics may cost; or say their `noise_multiplier`.
    `low` and `high` are a public range of the inputs: for the statistics, values beyond are cut. Of hashed words, which
    a model takes with a `PresenceLinear`, the statistics are how many texts have each: frequent ones count less. With
    `whiten` they are second moments: inputs have one length, and directions in which all of them are long are shrunk.

    >>> import reticent as rt
    >>> examples = torch.rand(300, 4), torch.randint(0, 2, (300,))
    >>> trained = rt.fit(nn.Linear(4, 2), rt.normalise(examples, budget_share=0.1), epsilon=2.0, epochs=1, seed=0)
    >>> trained.guarantee.epsilon <= 2.0
    True
    """
    if (budget_share is None) == (noise_multiplier is None):
        raise SettingError("give budget_share, such as 0.1, or noise_multiplier: one of the two")
    require(budget_share is None or 0 < budget_share < 1, "budget_share must be between 0 and 1")
    require(low < high and math.isfinite(high - low), "low must be below high, and both finite")
    require(not whiten or (low, high) == (0.0, 1.0), "whiten gives all inputs one length: leave out low and high")
    return Normalised(examples, budget_share, noise_multiplier, low, high, whiten)


def prepared(
    model: nn.Module,
    store: Store,
    asked: Normalised | None,
    budget: Budget | None,
    places: Sequence[int] = (),
    fill_noise: float | None = None,
) -> Prepared:
    """What a run is made of: the model, or one with a layer in front whose numbers are released once it is planned."""
    rows = store.rows if isinstance(store, Persons) else store
    if asked is not None and places:
        raise SettingError('rt.normalise and fill = "noisy" do not go together yet: declare a public fill')
    if asked is None and not places:
        return Prepared(model)
    inputs = _shape(rows)
    if asked is None:
        assert fill_noise is not None
        return _to_fill(nn.Sequential(Fill(inputs), model), store, inputs, places, fill_noise)
    if any(isinstance(layer, PresenceLinear) for layer in model.modules()):
        if asked.whiten:
            raise SettingError("hashed words are there or not: leave out whiten")
        return _to_weigh(model, store, asked.noise(budget, releases=1))
    if asked.whiten:
        return _to_whiten(nn.Sequential(whiten_of(inputs), model), store, inputs, asked.noise(budget, releases=1))
    network, noise = in_front(model, inputs), asked.noise(budget)

    def release(size: int | None, seed: int | None, folder: str | Path | None) -> None:
        _release(network, store, asked, noise, size, seed, None if folder is None else Path(folder))

    about: dict[str, object] = {"normalised": list(inputs)}
    return Prepared(network, (Gaussian(noise),) * RELEASES, about, release)


def _shape(rows: Store) -> tuple[int, ...]:
    """The shape of an input, whose first axis is that of the columns or channels."""
    match rows.take(np.zeros(1, np.int64)):
        case [Tensor() as x, *_] if x.ndim > 1:
            return tuple(x.shape[1:])
    raise SettingError(
        "what is normalised, or filled, are the columns (or channels) of inputs: give the examples as (x, y) with one "
        "row of numbers in x for each, as x.unsqueeze(1) makes of single numbers"
    )


def _to_fill(
    network: nn.Sequential, store: Store, inputs: tuple[int, ...], places: Sequence[int], noise: float
) -> Prepared:
    def release(size: int | None, seed: int | None, folder: str | Path | None) -> None:
        fill(network, store, places, noise, size=size, seed=seed, folder=None if folder is None else Path(folder))

    return Prepared(network, (Gaussian(noise),), {"filled": list(inputs)}, release)


def _to_weigh(network: nn.Module, store: Store, noise: float) -> Prepared:
    def release(size: int | None, seed: int | None, folder: str | Path | None) -> None:
        weigh(network, store, noise, size=size, seed=seed, folder=None if folder is None else Path(folder))

    return Prepared(network, (Gaussian(noise),), {}, release)


def _to_whiten(network: nn.Sequential, store: Store, inputs: tuple[int, ...], noise: float) -> Prepared:
    def release(size: int | None, seed: int | None, folder: str | Path | None) -> None:
        whiten(network, store, noise, size=size, seed=seed, folder=None if folder is None else Path(folder))

    return Prepared(network, (Gaussian(noise),), {"whitened": list(inputs)}, release)


def built_around(model: nn.Module, about: Mapping[str, object]) -> nn.Module:
    """A module with the layers in front of it that a card tells of.

    >>> built_around(nn.Linear(2, 2), {"normalised": [2]})[0].std
    tensor([1., 1.])
    """
    normalised, filled, whitened = (about.get(name) for name in ("normalised", "filled", "whitened"))
    if isinstance(filled, list):
        return nn.Sequential(Fill(tuple(filled)), model)
    if isinstance(whitened, list):
        return nn.Sequential(whiten_of(tuple(whitened)), model)
    return in_front(model, tuple(normalised)) if isinstance(normalised, list) else model


def in_front(model: nn.Module, inputs: tuple[int, ...]) -> nn.Sequential:
    """The model behind a layer that normalises each channel, for now by nothing.

    >>> in_front(nn.Linear(2, 2), (2,))[0].std
    tensor([1., 1.])
    """
    return nn.Sequential(PublicNormalise(torch.zeros(inputs[0]), torch.ones(inputs[0]), dimensions=len(inputs)), model)


def _release(
    network: nn.Sequential,
    store: Store,
    asked: Normalised,
    noise: float,
    size: int | None,
    seed: int | None,
    folder: Path | None,
) -> None:
    layer, half = network[0], (asked.high - asked.low) / 2
    assert isinstance(layer, PublicNormalise)
    length = math.sqrt(layer.mean.numel())  # every channel counts between -1 and 1, and so does its square

    def scaled(x: Tensor) -> Tensor:
        return (x.double().clamp(asked.low, asked.high) - asked.low) / half - 1

    def release(vault: Vault) -> dict[str, Tensor]:
        moments = release_moments(
            vault, mean_limit=length, square_limit=length, noise_multiplier=noise, size=size, before=scaled
        )
        return {"mean": moments.mean, "std": moments.std}

    found = release_once("statistics", store, (Gaussian(noise),) * RELEASES, release, seed, folder)
    layer.mean.copy_((asked.low + half * (1 + found["mean"])).reshape(layer.mean.shape))
    layer.std.copy_((half * found["std"]).reshape(layer.std.shape))
