"""A run's place in the ledger of its dataset: reserved before its first release, found again when it goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from reticent.accounting import Guarantee, Spending
from reticent.accounting.lineage import Lineage
from reticent.budgets.budget import DatasetBudget
from reticent.checkpoint import claim
from reticent.errors import ResumeError, SettingError
from reticent.files import replace_file

LEDGER, NOTE = "ledger.jsonl", "dataset.json"
"""In the folder of a run: which dataset it is charged to, and under which id."""


class Reservation:
    """What a run was charged. The id is in its folder before the charge is made: a crash between them loses neither."""

    def __init__(self, dataset: DatasetBudget, folder: Path | None, *, seeded: bool):
        if not isinstance(dataset, DatasetBudget):
            raise SettingError(
                f"dataset is {dataset!r}: give the budget itself, as rt.DatasetLedger(place)['patients'] does"
            )
        if seeded:
            raise SettingError(
                "the noise of a seeded run can be computed again, and two runs with one seed have the same: what is "
                "charged to a dataset takes no seed"
            )
        self.dataset = dataset
        self.run = uuid4().hex if folder is None else _known_or_new(dataset.name, folder)

    def stated(self, promised: Guarantee) -> Guarantee:
        """What may be said of a run that is charged here."""
        together = f"together with all that is charged to the dataset {self.dataset.name!r}: {self.dataset}"
        return replace(promised, covers=(*promised.covers, together))

    def knows(self, before: Lineage) -> bool:
        """Whether all of these runs were charged here too."""
        return all(self.dataset.find(run) is not None for run in before.runs)

    @property
    def place(self) -> list[str]:
        """The dataset and the id, for the description of a run."""
        return [self.dataset.name, self.run]

    def make(self, planned: Spending, before: Spending, method: str, *, resumed: bool) -> None:
        """Charge the whole plan, or find it charged if the run goes on or was cut off before it began."""
        known = self.dataset.find(self.run)
        if known is None and resumed:
            raise ResumeError(
                f"dataset {self.dataset.name!r} knows nothing of run {self.run}: what it has released would not count. "
                "Give the ledger that it was charged to"
            )
        if known is None:
            self.dataset.reserve(planned, before=before, run=self.run, method=method)
        elif (known.planned, known.before) != (planned, before) or (known.state != "reserved" and not resumed):
            raise ResumeError(
                f"run {self.run} was charged for another plan, or has begun, and its checkpoint is gone: start a new "
                "run in another folder; `reticent ledger settle` gives back what this one did not use"
            )
        elif known.used is not None:
            raise ResumeError(f"run {self.run} is settled and cannot go on: start a new run in another folder")

    def begin(self) -> None:
        """From here on something may be released; whatever is needed to go on must be on disk."""
        self.dataset.begin(self.run)


def _known_or_new(name: str, folder: Path) -> str:
    """The id in this folder, which is no copy of another."""
    claim(folder)
    if (folder / NOTE).exists():
        dataset, run = read_note(folder)
        if dataset != name:
            raise ResumeError(f"{folder} holds a run that is charged to dataset {dataset!r}, not to {name!r}")
        return run
    run = uuid4().hex
    (folder / LEDGER).touch()  # from here on a folder without a ledger has lost it
    replace_file(folder / NOTE, json.dumps({"dataset": name, "run": run}).encode())
    return run


def read_note(folder: Path) -> tuple[str, str]:
    """The dataset and the id of the run in a folder."""
    try:
        told = json.loads((folder / NOTE).read_bytes())
        return str(told["dataset"]), str(told["run"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise ResumeError(
            f"{folder} holds no run that is charged to a dataset: {NOTE} is not there or damaged"
        ) from error
