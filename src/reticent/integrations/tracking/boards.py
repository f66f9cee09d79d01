"""TensorBoard, MLflow and Weights & Biases, each told public numbers alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from reticent.errors import SettingError
from reticent.experiments.tracking import Meter
from reticent.integrations.tracking.tracker import Tracker, installed

Package: TypeAlias = Any
"""Something of a package that may not be installed."""


class TensorBoard(Tracker):
    """Writes for TensorBoard (`pip install reticent[tensorboard]`).

    After a crash, the rounds that are run again replace those that were written before it. Every number wants a time
    beside it: it gets the round's, since real times are private.
    """

    def __init__(self, folder: str | Path, meter: Meter | None = None):
        super().__init__(meter)
        self._kind, self._folder = installed("torch.utils.tensorboard", "tensorboard").SummaryWriter, folder
        self._writer: Package = None

    def begin(self, first: int, settings: Mapping[str, float | str]) -> None:  # noqa: ARG002 - it draws curves only
        """Open the folder; rounds from `first` on are written anew."""
        self._writer = self._kind(str(self._folder), purge_step=first)

    def write(self, number: int, values: Mapping[str, float]) -> None:
        """One curve for each name."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, number, walltime=float(number))

    def end(self) -> None:
        """Close the folder."""
        self._writer.close()


class MLflow(Tracker):
    """Writes into the run of MLflow that is active, or a new one (`pip install reticent[mlflow]`).

    A metric's time is its round; when the whole began and ended, MLflow notes by itself.
    """

    tells_times = True

    def __init__(self, meter: Meter | None = None):
        super().__init__(meter)
        self._mlflow: Package = installed("mlflow")
        self._ours = False

    def begin(self, first: int, settings: Mapping[str, float | str]) -> None:  # noqa: ARG002 - they are the same again
        """The settings become parameters, once; a run of MLflow that holds those of another run is left alone."""
        if self._mlflow.active_run() is None:
            self._mlflow.start_run()
            self._ours = True
        told = {name: str(value) for name, value in settings.items()}
        number = self._mlflow.active_run().info.run_id
        there = self._mlflow.MlflowClient().get_run(number).data.params
        other = [name for name, value in told.items() if there.get(name, value) != value]
        if other:
            raise SettingError(
                f"the active run of MLflow has another {other[0]} already ({there[other[0]]}): end it before this one "
                "begins (mlflow.end_run()), or begin another (mlflow.start_run(nested=True))"
            )
        self._mlflow.log_params({name: value for name, value in told.items() if name not in there})

    def write(self, number: int, values: Mapping[str, float]) -> None:
        """One metric for each name."""
        self._mlflow.log_metrics(dict(values), step=number, timestamp=number)

    def end(self) -> None:
        """End the run, if it was begun here."""
        if self._ours:
            self._mlflow.end_run()


class WandB(Tracker):
    """Writes into a run of Weights & Biases, given or begun with these settings (`pip install reticent[wandb]`).

    It notes the time of everything that it is told, so it is told all rounds at the end. A run that is begun here
    records neither the console nor what the machine does.
    """

    tells_times = True

    def __init__(self, run: Package = None, meter: Meter | None = None, **settings: Package):
        super().__init__(meter)
        self._wandb: Package = installed("wandb")
        self._run, self._settings, self._ours = run, settings, run is None
        self._waiting: list[tuple[int, dict[str, float]]] = []

    def begin(self, first: int, settings: Mapping[str, float | str]) -> None:  # noqa: ARG002 - a run is one process' own
        """The settings become the run's config."""
        if self._run is None:
            quiet = self._wandb.Settings(console="off", x_disable_stats=True, save_code=False)
            self._run = self._wandb.init(settings=quiet, **self._settings)
        self._run.config.update(dict(settings))

    def write(self, number: int, values: Mapping[str, float]) -> None:
        """Kept until the end."""
        self._waiting.append((number, dict(values)))

    def end(self) -> None:
        """All rounds at once."""
        for number, values in self._waiting:
            self._run.log(values, step=number)
        if self._ours:
            self._run.finish()
