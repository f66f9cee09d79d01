"""Live tracking: one line of public numbers a round; private diagnostics apart, and marked as what they are."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reticent.checkpoint import replace_file
from reticent.errors import SettingError
from reticent.run import Run, Step

Tracker = Callable[[Run, Step], None]

PAUSE = 50
"""Pricing epsilon may take longer than a round: it is done so seldom that it takes one fiftieth of the time."""


def public_numbers(run: Run, step: Step) -> dict[str, Any]:
    """What may be shown of a round: its number, whether it was kept, and the settings it was run with.

    No times: how long a round takes depends on how many examples were drawn, which is private.
    """
    settings = run.plan.method.turned(run.settings, step.number - 1)
    return {
        "round": step.number,
        "of": len(run),
        "kept": step.kept,
        "kept_so_far": run.kept,
        "noise_multiplier": settings.noise_multiplier,
        "max_grad_norm": settings.max_grad_norm,
        "batch_size": settings.batch_size,
        "lr": run.optimizer.param_groups[0]["lr"],
    }


class Meter:
    """Epsilon if exactly this many rounds had been planned, asked for now and then; None in between."""

    def __init__(self) -> None:
        self._next = -math.inf

    def __call__(self, run: Run, step: Step) -> float | None:
        """The figure, if it is time for one; always after the last round."""
        start = time.monotonic()
        if start < self._next and step.number < len(run):
            return None
        epsilon = run.spent()
        end = time.monotonic()
        self._next = end + PAUSE * (end - start)
        return epsilon if math.isfinite(epsilon) else None


class JsonLines:
    """Writes each round as a line of JSON; after a crash it goes on without a gap or a double line.

    `epsilon_if_planned` is a live figure, not a guarantee: epsilon if exactly so many rounds had been planned.
    """

    def __init__(self, path: Path, meter: Meter | None = None):
        self._path, self._meter, self._begun = path, meter or Meter(), False

    def __call__(self, run: Run, step: Step) -> None:
        """Write one round."""
        if not self._begun:
            self._cut_back(step.number)
        line = public_numbers(run, step) | {"epsilon_if_planned": self._meter(run, step)}
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def _cut_back(self, number: int) -> None:
        """Drop the rounds that are run again after a crash, and a line that it cut short."""
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        kept = [line for line in lines if _round(line) < number]
        replace_file(self._path, "".join(line + "\n" for line in kept).encode())
        self._begun = True


def _round(line: str) -> float:
    try:
        return float(json.loads(line)["round"])
    except ValueError:
        return math.inf  # cut short by the crash


class TensorBoard:
    """Writes the same public numbers for TensorBoard (`pip install reticent[tensorboard]`).

    After a crash, the rounds that are run again replace those that were written before it. Every number wants a time
    beside it: it gets the round's, since real times are private.
    """

    def __init__(self, folder: Path, meter: Meter | None = None):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise SettingError("TensorBoard is not installed: pip install 'reticent[tensorboard]'") from error
        self._open: Callable[[int], Any] = lambda first: SummaryWriter(str(folder), purge_step=first)
        self._writer: Any = None
        self._meter = meter or Meter()

    def __call__(self, run: Run, step: Step) -> None:
        """Write one round."""
        if self._writer is None:
            self._writer = self._open(step.number)
        numbers = public_numbers(run, step) | {"epsilon_if_planned": self._meter(run, step)}
        for name, value in numbers.items():
            if value is not None and name not in ("round", "of"):
                self._writer.add_scalar(f"public/{name}", float(value), step.number, walltime=float(step.number))
        if step.number == len(run):
            self._writer.close()


def write_private_diagnostics(run: Run, path: Path) -> None:
    """Write what the run recorded about its examples, readable by the owner only, every line marked as private."""
    lines = (json.dumps(record | {"private": True}) + "\n" for record in run.private_diagnostics())
    replace_file(path, "".join(lines).encode(), mode=0o600)
