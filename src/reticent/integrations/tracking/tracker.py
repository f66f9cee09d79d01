"""A tracker: what may be shown of a run, round by round, for whatever draws curves of it."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from types import ModuleType

from reticent.errors import SettingError
from reticent.experiments.tracking import Meter, public_numbers
from reticent.run import Run, Step

NEVER = ("round", "of")


class Tracker(ABC):
    """Given to `rt.fit` as `progress`, or to `run.tellers`, it writes public numbers and nothing else.

    A kind of it says how to begin, write and end; times are not written, since those of rounds are private.
    """

    tells_times = False
    """Whether what it writes to notes real times by itself."""

    def __init__(self, meter: Meter | None = None):
        self._meter = meter or Meter()
        self._begun = False

    @abstractmethod
    def begin(self, first: int, settings: Mapping[str, float | str]) -> None:
        """Rounds come from this number on; the settings are public."""

    @abstractmethod
    def write(self, number: int, values: Mapping[str, float]) -> None:
        """The public numbers of a round."""

    @abstractmethod
    def end(self) -> None:
        """Nothing more is written."""

    def __call__(self, run: Run, step: Step) -> None:
        """Write one round."""
        if not self._begun:
            if self.tells_times and run.guarantee().time_is_private:
                raise SettingError(
                    f"{type(self).__name__} notes when things were written, and with {run.plan.method.name} time tells "
                    "of the examples: use TensorBoard, or the lines of JSON in the run's folder"
                )
            self.begin(step.number, public_settings(run))
            self._begun = True
        told = asdict(public_numbers(run, step, self._meter(run, step)))
        shown = {name: float(value) for name, value in told.items() if value is not None and name not in NEVER}
        self.write(step.number, {f"public/{name}": value for name, value in shown.items()})
        if step.number == len(run):
            self.end()


def public_settings(run: Run) -> dict[str, float | str]:
    """What was fixed before the first round, the guarantee among it."""
    plan = run.plan
    return {
        "method": plan.method.name,
        "rounds": plan.rounds,
        "batch_size": plan.settings.batch_size,
        "noise_multiplier": plan.settings.noise_multiplier,
        "max_grad_norm": plan.settings.max_grad_norm,
        "guarantee": str(run.guarantee()),
    }


def installed(name: str, extra: str | None = None) -> ModuleType:
    """A package that comes with an extra, or an error that names the extra."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        remedy = f"pip install 'reticent[{extra or name}]'"
        raise SettingError(f"{extra or name} is not installed: {remedy}") from error
