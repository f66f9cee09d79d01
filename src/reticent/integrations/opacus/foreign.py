"""Somebody else's run: what the history in a file of Opacus costs, and what that takes for granted."""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch

from reticent.accounting import Event, Guarantee, price
from reticent.accounting.events import Gaussian
from reticent.accounting.guarantee import round_up
from reticent.errors import DataError
from reticent.integrations.opacus.accountant import NAMES, Line, epsilon_of, read_history, tally_of
from reticent.reading import reading

CAVEATS = (
    "every batch was a Poisson draw of its own (poisson_sampling=True, and the loop iterated over the loader that "
    "make_private returned): the file does not say",
    "the number of steps, noise and rate were fixed without looking at the examples",
    "the number of examples is public: the rate is one over the number of batches, which is counted on them (with "
    "drop_last it is the larger rate that was also drawn by)",
    "the file was written by an unchanged Opacus and holds every step that was taken on these examples",
    "noise of floating numbers is taken for real: without secure_mode it can be told apart",
    "every gradient was that of one example: Opacus does not look whether a loss or a model mixes them",
)
INSTEAD = "give a checkpoint of Opacus, or its history as JSON: [[noise_multiplier, sample_rate, steps], ...]"
NOT_GDP = "the file was accounted by GDP, the central limit, which may have stated less than is proved"


def guarantee_of(path: Path, delta: float) -> tuple[Guarantee, dict[str, float]]:
    """What is proved of the run in a checkpoint or a history, and the numbers of interest beside it."""
    history, name = read_foreign(path)
    if not history:
        raise DataError(f"{path.name} holds no step: nothing was released")
    if any(noise == 0 for noise, _, _ in history):
        raise DataError(f"{path.name} has steps without noise: no epsilon is proved of them")
    cost = price(tally_of(history), delta)
    caveats = CAVEATS + ((NOT_GDP,) if name == "gdp" else ())
    shuffled = if_shuffled(history, delta)
    caveats = (
        f"if batches were shuffled instead, nothing is amplified: epsilon is {round_up(shuffled)} then, each example "
        "once an epoch",
        *caveats,
    )
    promised = Guarantee.of(cost, covers=("the model after the last step in the file",), assumptions=caveats)
    numbers = {"steps": float(sum(line[2] for line in history)), "epsilon_if_shuffled": shuffled}
    if name != "gdp" and name is not None:
        numbers[f"epsilon_by_{name}"] = epsilon_of(history, delta, name)
    return promised, numbers


def if_shuffled(history: list[Line], delta: float) -> float:
    """Epsilon where every epoch goes once through the examples in batches: each takes part in one step of it.

    >>> if_shuffled([(2.0, 0.1, 25)], 1e-5) == price({Gaussian(2.0): 3}, 1e-5).epsilon
    True
    >>> if_shuffled([(2.0, 0.1, 5), (1.0, 0.1, 10)], 1e-5) == price({Gaussian(2.0): 1, Gaussian(1.0): 2}, 1e-5).epsilon
    True
    """
    epochs: dict[Event, int] = {}
    begun = 0.0
    for noise, rate, steps in history:
        ended = begun + steps * rate  # a stretch that begins within an epoch may meet an example once more
        met = math.ceil(ended - 1e-9) - math.floor(begun + 1e-9)
        epochs[Gaussian(noise)] = epochs.get(Gaussian(noise), 0) + met
        begun = ended
    return price(epochs, delta).epsilon


def read_foreign(path: Path) -> tuple[list[Line], str | None]:
    """History and accountant of a file: a checkpoint of Opacus, or a history as JSON; nothing in it is run."""
    with reading(path.name, INSTEAD):
        if path.suffix == ".json":
            told = json.loads(path.read_text())
        else:
            told = torch.load(path, map_location="cpu", weights_only=True)
    if isinstance(told, dict) and "privacy_accountant_state_dict" in told:
        told = told["privacy_accountant_state_dict"]
    name = told.get("mechanism") if isinstance(told, dict) else None
    history = read_history(told.get("history") if isinstance(told, dict) else told)
    return history, name if name in NAMES else None
