"""Fast checks of what is stored: ledger, checkpoint, weights and card; each mutant must make one of them fail."""

from __future__ import annotations

import errno
import json
import logging
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import torch
from safetensors.torch import load_file, save_file
from torch import nn

import reticent as rt
from reticent.accounting import Entry, Gaussian, Guarantee, Ledger
from reticent.accounting.ledger import read_entries
from reticent.errors import FileWarning, ReticentError
from reticent.gradients import norms_and_sum
from reticent.inside.careful import OneByOne
from reticent.results import Effort, Result

ENTRIES = [Entry(number, 0, Gaussian(2.0), "ab") for number in range(3)]


def refused(act: Callable[[], object], what: str) -> None:
    try:
        act()
    except ReticentError:
        return
    raise AssertionError(what)


def a_changed_ledger_is_not_read() -> None:
    """A line with other noise, its length and its end as they were."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        ledger = Ledger(path)
        for entry in ENTRIES:
            ledger.record(entry)
        path.write_bytes(path.read_bytes().replace(b"2.0", b"9.0", 1))
        refused(lambda: read_entries(path), "a changed line was read")


def failed_writes_leave_one_line_for_each_place() -> None:
    """A disk that fills up in the middle of a line, and then has room again, in one process."""
    write = os.write

    def half(file: int, data: bytes) -> int:
        write(file, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", FileWarning)
        path = Path(folder) / "ledger.jsonl"
        ledger = Ledger(path)
        ledger.record(ENTRIES[0])
        with mock.patch.object(os, "write", half):
            refused(lambda: ledger.record(ENTRIES[1]), "a half line counts as written")
        try:
            found = [ledger.record(entry) for entry in ENTRIES] and read_entries(path)
        except ReticentError as error:
            raise AssertionError("the folder can not be read any more") from error
        assert found == ENTRIES


def _run(folder: str) -> rt.Run:
    torch.manual_seed(0)
    net = nn.Linear(2, 2)
    return rt.Run(
        net,
        torch.optim.SGD(net.parameters(), lr=0.1),
        (torch.ones(30, 2), torch.zeros(30, dtype=torch.long)),
        method=rt.methods.dpsgd(noise_multiplier=1.0),
        batch_size=3,
        rounds=4,
        seed=0,
        folder=folder,
        resume=True,
        checkpoint_seconds=0.0,
    )


def a_run_goes_on_with_its_own_ledger_only() -> None:
    """A ledger that is well-formed, but tells of other answers than the checkpoint was written after."""
    with tempfile.TemporaryDirectory() as folder:
        run = _run(folder)
        run.step()
        run.step()
        path = Path(folder) / "ledger.jsonl"
        entries = read_entries(path)
        path.unlink()
        other = Ledger(path)
        for entry in entries:
            other.record(Entry(entry.round, entry.query, entry.event, "0" * 32))
        refused(lambda: _run(folder), "the run went on with another ledger")


def other_weights_do_not_get_the_guarantee() -> None:
    """Weights that were exchanged in a saved folder."""
    with tempfile.TemporaryDirectory() as folder:
        list(run := _run(folder))
        rt.Trained.of(run).save(folder)
        path = Path(folder) / "model.safetensors"
        tensors = load_file(path)
        tensors["bias"].add_(1.0)
        save_file(tensors, path)
        assert rt.verify(folder).wrong == ["weights"], "other weights have a certificate"
        refused(lambda: rt.load(folder, nn.Linear(2, 2)), "other weights were loaded with the guarantee")


def the_clock_is_not_told_of_hidden_attempts() -> None:
    """How long a run took tells how many attempts, or trials, there were."""
    for route in ("per_accepted", "best_trial"):
        hidden, recipe = Guarantee("proved", 1.0, 1e-5, route=route), {"data": "digits", "method": "dpsur"}
        result = Result(
            run="a", label="a", recipe=recipe, guarantee=hidden, seconds=3.25, effort=Effort(cpu_seconds=4.5)
        )
        told = json.dumps([result.stored(), result.to_json()])
        assert "3.25" not in told, "the clock is in the result"
        assert "4.5" not in told, "the clock is in the record"


def nobody_hears_of_a_bad_record() -> None:
    """No line in the log where an example has to be evaluated alone."""
    model, lines = nn.Linear(2, 2), []
    handler = mock.Mock(level=logging.WARNING, handle=lines.append)
    logging.getLogger("reticent").addHandler(handler)
    try:
        alone = OneByOne(lambda net, batch: net(batch[0]).sum(1))
        norms_and_sum(model, alone, (torch.rand(3, 2),), torch.ones_like)
    finally:
        logging.getLogger("reticent").removeHandler(handler)
    assert not lines, "the log tells of it"


CHECKS = [
    the_clock_is_not_told_of_hidden_attempts,
    nobody_hears_of_a_bad_record,
    a_changed_ledger_is_not_read,
    failed_writes_leave_one_line_for_each_place,
    a_run_goes_on_with_its_own_ledger_only,
    other_weights_do_not_get_the_guarantee,
]
