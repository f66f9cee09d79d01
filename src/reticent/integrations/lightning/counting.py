"""Where a trainer goes on: its checkpoint says which run it is of, and the run says how far it has come."""

from __future__ import annotations

from pytorch_lightning import Trainer

from reticent.accounting.lineage import UNKNOWN_LINEAGE, Lineage
from reticent.errors import DataError, ResumeError
from reticent.integrations.opacus.listening import Value
from reticent.run import Run

NOTE = "reticent"
"""Where a checkpoint of Lightning says which run it is of, how far that had come, and what the weights cost."""


def lineage_of(note: dict[str, Value]) -> Lineage:
    """The runs that made the weights of a checkpoint; one that does not say cost nobody knows how much."""
    try:
        return Lineage.from_json(note["lineage"])
    except (DataError, KeyError):
        return UNKNOWN_LINEAGE


def refuse_other_run(note: dict[str, Value] | None, run: Run) -> None:
    """Refuse a trainer's checkpoint that is of another run, or knows of rounds that the run's folder does not."""
    if note is None:
        return
    if note.get("run") != run.bill.run:
        raise ResumeError(
            "the checkpoint is of another run than the folder: name one that this run wrote, or leave out ckpt_path"
        )
    if note["round"] > run.number:
        raise ResumeError(
            f"the checkpoint is of round {note['round']}, and the folder of the run stands at {run.number}: it is an "
            "older copy. Give the folder that the checkpoint was written beside, or leave out ckpt_path"
        )


def counted(trainer: Trainer, number: int, each: int, note: dict[str, Value] | None) -> None:
    """Let a trainer count from the rounds that are done; epochs are those of its checkpoint, if it was given one."""
    if number == 0:
        return
    loop = trainer.fit_loop.epoch_loop
    steps = loop.manual_optimization.optim_step_progress.total
    steps.ready = steps.completed = loop._batches_that_stepped = number
    if note is None:
        epochs: Value = trainer.fit_loop.epoch_progress
        for progress in (epochs.total, epochs.current):
            progress.ready = progress.started = progress.processed = progress.completed = number // each
