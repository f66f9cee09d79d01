"""Live tracking: one line of public numbers a round; private diagnostics apart, and marked as what they are."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from reticent.files import append, replace_file, write_private
from reticent.results.fields import Fields
from reticent.run import Run, Step

PAUSE = 50
"""Pricing epsilon may take longer than a round: it is done so seldom that it takes one fiftieth of the time."""


@dataclass(frozen=True, kw_only=True)
class PublicNumbers:
    """What may be shown of a round: its number, whether it was kept, and the settings it was run with.

    No times: how long a round takes depends on how many examples were drawn, which is private.
    """

    round: int
    of: int
    kept: bool
    kept_so_far: int
    noise_multiplier: float
    max_grad_norm: float
    batch_size: float
    lr: float
    epsilon_if_planned: float | None
    """A live figure, not a guarantee: epsilon if exactly so many rounds had been planned; None: not asked for now."""


def public_numbers(run: Run, step: Step, epsilon: float | None = None) -> PublicNumbers:
    """The public numbers of a round that was just run."""
    settings = run.plan.method.turned(run.settings, step.number - 1)
    return PublicNumbers(
        round=step.number,
        of=len(run),
        kept=step.kept,
        kept_so_far=run.kept,
        noise_multiplier=settings.noise_multiplier,
        max_grad_norm=settings.max_grad_norm,
        batch_size=settings.batch_size,
        lr=run.optimizer.param_groups[0]["lr"],
        epsilon_if_planned=epsilon,
    )


class Meter:
    """Epsilon if exactly this many rounds had been planned, asked for now and then; None in between."""

    def __init__(self) -> None:
        self._next = -math.inf

    def __call__(self, run: Run, step: Step) -> float | None:
        """The figure, if it is time for one; always after the last round."""
        start = time.monotonic()
        hidden = run.plan.method.gate.candidates > 1  # when figures come would tell how long hidden attempts took
        if (start < self._next or hidden) and step.number < len(run):
            return None
        epsilon = run.spent()
        end = time.monotonic()
        self._next = end + PAUSE * (end - start)
        return epsilon if math.isfinite(epsilon) else None


class JsonLines:
    """Writes each round as a line of JSON; after a crash it goes on without a gap or a double line.

    Given to a run as a teller, it writes before the run's checkpoint does: a round that is not run again has its line.
    """

    def __init__(self, path: Path, meter: Meter | None = None):
        self._path, self._meter = path, meter or Meter()
        self._end: int | None = None
        self._first: float = math.inf
        self._waiting = b""
        """Lines that could not be written: they come first when there is room again."""

    def __call__(self, run: Run, step: Step) -> None:
        """Write one round."""
        line = json.dumps(asdict(public_numbers(run, step, self._meter(run, step))))
        self._waiting += line.encode() + b"\n"
        self._first = min(self._first, step.number)
        if self._end is None:
            self._end = self._cut_back(self._first)
        self._end = append(self._path, self._end, self._waiting)
        self._waiting = b""

    def _cut_back(self, number: float) -> int:
        """Drop the rounds that are run again after a crash, and a line that it cut short; how long it is then."""
        lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        kept = b"".join(line + b"\n" for line in lines if _round(line, str(self._path)) < number)
        replace_file(self._path, kept)
        return len(kept)


def _round(line: bytes, where: str) -> float:
    try:
        told: object = json.loads(line)
    except (ValueError, RecursionError):
        return math.inf  # cut short by the crash
    return Fields(told, where).need("round", float)


def write_private_diagnostics(run: Run, path: Path) -> None:
    """Write what the run recorded about its examples, readable by the owner only, every line marked as private."""
    lines = (json.dumps(record | {"private": True}) + "\n" for record in run.private_diagnostics())
    write_private(path, "".join(lines).encode())
