"""Settling: a run that is over, or will never go on, is charged for what its own folder shows and no more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from reticent import checkpoint
from reticent.accounting import Ledger, Spending
from reticent.budgets.budget import DatasetBudget, DatasetCharge
from reticent.budgets.reserving import LEDGER, read_note
from reticent.errors import ResumeError
from reticent.holding import Hold
from reticent.resuming import refuse_lost

if TYPE_CHECKING:
    from reticent.budgets.ledger import DatasetLedger


def settle(ledger: DatasetLedger, folder: Path) -> tuple[DatasetBudget, DatasetCharge]:
    """Give back what the run in a folder has not released; while it is held, nobody goes on with it."""
    name, run = read_note(folder)
    dataset = ledger[name]
    hold = Hold(folder)
    try:
        checkpoint.claim(folder)  # a copy may have been made before the last rounds
        known = dataset.find(run)
        if known is None:
            raise ResumeError(f"dataset {name!r} of this ledger knows nothing of run {run}: give the right one (--db)")
        used = _released(folder, known.planned, begun=known.state != "reserved")
        if not known.planned.filters and Counter(used.events) - Counter(known.planned.events):
            raise ResumeError(f"the ledger of {folder} has releases that run {run} was not charged for")
        return dataset, dataset.settle(run, used)
    finally:
        hold.release()


def _released(folder: Path, planned: Spending, *, begun: bool) -> Spending:
    """What the ledger of a folder lists; refused if something that must be there is gone."""
    path, stored = folder / LEDGER, checkpoint.checkpoint_of(folder)
    if not path.exists() or (begun and not stored.exists()):
        raise ResumeError(f"{folder} has lost its ledger or its checkpoint: what it released is not known")
    ledger = Ledger(path)
    if stored.exists():
        refuse_lost(ledger, checkpoint.read(stored))
    return Spending(ledger.tally(), declared=planned.declared, unit=planned.unit)
