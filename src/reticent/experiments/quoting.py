"""Quotes: what a run would cost, or what a budget affords it, from public numbers alone and by the run's own plan."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from reticent import catalogue, data, methods
from reticent.accounting import Guarantee
from reticent.accounting.claims.claimed import Orders
from reticent.accounting.pricing import Accountant
from reticent.errors import SettingError
from reticent.experiments.parts import model_of
from reticent.experiments.people import people_of
from reticent.experiments.recipe import Recipe
from reticent.experiments.request import Request, method_of, request
from reticent.experiments.settling import settled
from reticent.inside import Poisson, RoundSettings
from reticent.methods.solving import tally
from reticent.settling import public_of

DELTA = 1e-5
"""Where the number of examples, and with it the usual delta, is not said."""
FINE = 10**6
"""How many examples there are said to be where only a rate is looked for: it is found to a millionth."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How large and how long a run would be; what is not known follows from the recipe, its dataset or the budget."""

    data_size: int | None = None
    sample_rate: float | None = None
    rounds: int | None = None
    accountant: Accountant = "best"


@dataclass(frozen=True)
class Quote:
    """A plan that nobody has run, and what it promises."""

    plan: methods.Plan
    guarantee: Guarantee
    found: str | None
    """The number that followed from the budget: noise_multiplier, rounds, batch_size, or sample_rate without a size."""
    sized: bool
    """Whether the number of examples was said, not only a rate."""


def quote(recipe: Recipe, scale: Scale, *, accepted: int | None = None, orders: Orders = "paper") -> Quote:
    """What the recipe's run is proved to cost, and what its paper claims, after so many accepted updates if not all.

    >>> print(quote(Recipe(noise_multiplier=1.0), Scale(sample_rate=0.01, rounds=1000)).guarantee)
    (1.83, 1e-05)-DP, one example's contribution removed or added, the number of examples being public, proved (PLD)
    """
    asked, sized = _asked(recipe, scale), _said(recipe, scale)
    plan = asked.plan()
    claim = plan.claim(accepted, orders)
    said = None if claim is None else claim.to_json()
    return Quote(plan, replace(plan.guarantee(seeded=False), as_claimed=said), _followed(asked, sized=sized), sized)


def nothing_proved(name: str, delta: float | None) -> Guarantee | None:
    """The answer for a defence outside the pipeline, which no plan can price; None for a method.

    >>> print(nothing_proved("selena", None))
    no differential privacy: SELENA is an empirical defence
    """
    about = catalogue.find(name)
    if about.kind != "defence":
        return None
    why = f"{about.title} is {about.guarantee.removeprefix('none: ')}"
    return Guarantee("none", math.inf, DELTA if delta is None else delta, why=why)


def _asked(recipe: Recipe, scale: Scale) -> Request:
    """The request of a run with these numbers, the same that the run itself would make."""
    if scale.rounds is not None and recipe.epochs is not None:
        raise SettingError("give --rounds or --epochs, not both")
    if scale.sample_rate is not None and recipe.batch_size is not None:
        raise SettingError("give --sample-rate or --batch-size, not both")
    if scale.sample_rate is not None and not 0 < scale.sample_rate <= 1:
        raise SettingError(f"the sample rate is {scale.sample_rate:g}: it is a chance above 0, at most 1")
    size = _size(recipe, scale)
    if scale.sample_rate is not None:
        recipe = replace(recipe, batch_size=scale.sample_rate * size)
    if recipe.delta is None and not _said(recipe, scale):
        recipe = replace(recipe, delta=DELTA)
    asked = replace(request(recipe, size, accountant=scale.accountant), rounds=scale.rounds)
    if asked.batch_size is None and not isinstance(asked.method.sampler, Poisson):
        return replace(asked, batch_size=float(size))  # everybody takes part: the price knows no batch
    return asked


def _said(recipe: Recipe, scale: Scale) -> bool:
    """Whether the number of examples is known or declared."""
    return recipe.size is not None or scale.data_size is not None


def _size(recipe: Recipe, scale: Scale) -> int:
    """How many private examples there would be: those that are set aside are taken off, as a run does."""
    if recipe.size is not None:
        return recipe.size
    if scale.data_size is not None:
        size = scale.data_size - (recipe.holdout or 0) - (recipe.validation or 0)
        if size < 1:
            raise SettingError(f"nothing is left of {scale.data_size} examples when so many are set aside")
        return size
    if recipe.batch_size is not None:
        raise SettingError("--batch-size needs --data-size: the price depends on the share that is drawn")
    method = replace(method_of(recipe), noise_multiplier=1.0)
    if method.adaptive is not None or _events(method, 2) != _events(method, 2**20):
        raise SettingError(f"{recipe.method} needs --data-size: its price depends on more than the rate")
    # Any size will do. With 1 the rate is the batch size itself, to the last bit.
    return 1 if scale.sample_rate is not None else FINE


def _events(method: methods.Method, size: int) -> object:
    """What a round at rate 1/2 costs among so many examples."""
    return tally(method, RoundSettings(size, size / 2, method.max_grad_norm, 1.0), 1)


def _followed(asked: Request, *, sized: bool) -> str | None:
    if asked.batch_size is None:
        return "batch_size" if sized else "sample_rate"
    if asked.rounds is None and asked.epochs is None:
        return "rounds"
    return "noise_multiplier" if asked.method.noise_multiplier is None else None


def of_dataset(recipe: Recipe) -> tuple[Recipe, int]:
    """The recipe as `train` would settle it, and the size of its dataset; features are made of one example only.

    >>> of_dataset(Recipe(data="digits", epsilon=3.0))[1]
    1437
    """
    filled = recipe.filled()
    shaped, size = _shaped(filled)
    return settled(filled, shaped, _size(filled, Scale(data_size=size))), size


def network_of(recipe: Recipe) -> tuple[Recipe, int, tuple[int, int]]:
    """The recipe, how many private examples it has, and the parameters and layers of its network.

    >>> network_of(Recipe(data="digits"))[1:]
    (1437, (650, 1))
    """
    filled = recipe.filled()
    shaped, size = _shaped(filled)
    with torch.random.fork_rng(devices=[]):
        public = public_of(model_of(filled, shaped), method_of(filled), size=size, budget=None)
    return recipe, _size(filled, Scale(data_size=size)), (public.parameters, public.layers)


def _shaped(recipe: Recipe) -> tuple[data.Dataset, int]:
    """The dataset of a (filled) recipe with one example in it, and how many there are."""
    dataset = data.load(recipe.data, folder=recipe.data_folder, declared=recipe.declared())
    few = replace(dataset, train=dataset.train.take([0]), test=None)
    shaped = few if recipe.features is None else data.extract(few, recipe.features, folder=recipe.data_folder)
    return shaped, recipe.subset or len(people_of(recipe, dataset.train))
