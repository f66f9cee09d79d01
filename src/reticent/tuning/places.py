"""Where trials are made: here, one after another, or several at a time in processes or on a cluster."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from torch import Tensor, nn

from reticent.errors import ReticentError
from reticent.executors import Executor, Tell, each, executor_for
from reticent.tuning.trials import Trials, new_model


@dataclass(frozen=True)
class Asked:
    """What one trial is made with."""

    choice: int
    settings: Mapping[str, float]
    noise: float
    seed: int | None


@dataclass(frozen=True)
class Elsewhere:
    """How many trials at a time, and on which cluster; neither: here."""

    jobs: int | None = None
    cluster: str | None = None

    @property
    def here(self) -> bool:
        """Whether all is done in this process."""
        return self.cluster is None and (self.jobs or 1) == 1

    def executor(self) -> Executor:
        """Who does it."""
        return executor_for(self.cluster, self.jobs)


def trained_by(
    trials: Trials, asked: Mapping[int, Asked], path: Path | None, elsewhere: Elsewhere
) -> Iterator[tuple[int, nn.Module]]:
    """The models of the trials, in order; where one fails, the others are made first, and a resumed search has them.

    What is sent elsewhere is what a trial learns from; each makes its key by itself.
    """
    root = path if path is None or elsewhere.here else path.resolve()
    places = {number: None if root is None else root / "trials" / str(number) for number in asked}
    if elsewhere.here:
        for turn, (number, one) in enumerate(asked.items()):
            with nullcontext() if turn == 0 else _without_a_word():
                model = trials.run(one.settings, one.noise, one.seed, places[number])
            yield number, model
        return
    works = [(str(number), partial(_weights, trials, one, places[number])) for number, one in asked.items()]
    waiting, found, failed = list(asked), dict[int, dict[str, Tensor]](), list[str]()
    for over in each(elsewhere.executor, works):
        if over.error is None:
            found[int(over.name)] = over.answer
        else:
            failed.append(over.error)
        while waiting and waiting[0] in found:
            model = new_model(trials.make)
            model.load_state_dict(found.pop(waiting[0]))
            yield waiting.pop(0), model
    if failed:
        raise ReticentError(f"a trial failed: {failed[0]}")


def _weights(trials: Trials, one: Asked, place: Path | None, tell: Tell) -> dict[str, Tensor]:  # noqa: ARG001 - how far trials are is nobody's business
    with _without_a_word():
        return dict(trials.run(one.settings, one.noise, one.seed, place).state_dict())


@contextmanager
def _without_a_word() -> Iterator[None]:
    """What the first trial said of model and data, the others would say again: the log would count them."""
    logger = logging.getLogger("reticent")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
