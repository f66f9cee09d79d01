"""A folder belongs to one run at a time, and a replayed round asks just what it asked before."""

from __future__ import annotations

import os
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import torch
from tests import quick
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

import reticent as rt
from reticent.errors import ResumeError, SettingError

Pair = tuple[Tensor, Tensor]

SCRIPT = """
import sys, torch, reticent as rt
torch.manual_seed(0)
net = torch.nn.Linear(4, 2)
x, y = torch.randn(200, 4), torch.arange(200) % 2
run = rt.Run(net, torch.optim.SGD(net.parameters(), lr=0.1), (x, y), method=rt.methods.dpsgd(noise_multiplier=1.0),
             batch_size=50, rounds=5, delta=1e-5, folder=sys.argv[1])
run.step()
print("ready", flush=True)
sys.stdin.readline()
"""


def a_run(folder: Path, pair: Pair, method: rt.methods.Method | None = None, **settings: object) -> rt.Run:
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    chosen = {"batch_size": 50, "rounds": 5, "delta": 1e-5, "checkpoint_seconds": 1e9} | settings
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    method = rt.methods.dpsgd(noise_multiplier=1.0) if method is None else method
    return rt.Run(net, optimizer, pair, method=method, folder=folder, **chosen)


def test_another_process_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    (asked, ask), (told, tell) = os.pipe(), os.pipe()
    with open(asked) as stdin, open(ask, "w"), open(told) as stdout:
        with open(tell, "w") as says:
            first = quick.begin(SCRIPT, tmp_path, files=(stdin, says))
        assert stdout.readline() == "ready\n"
        refused_while_it_lives(first, tmp_path)


def refused_while_it_lives(first: BaseProcess, folder: Path) -> None:
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    pair = torch.randn(200, 4), torch.arange(200) % 2

    def second() -> rt.Run:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        method = rt.methods.dpsgd(noise_multiplier=1.0)
        settings = {"batch_size": 50, "rounds": 5, "delta": 1e-5}
        return rt.Run(net, optimizer, pair, method=method, folder=folder, resume=True, **settings)

    with pytest.raises(ResumeError, match=f"in use by process {first.pid}"):
        second()
    first.kill()
    first.join()
    run = second()
    list(run)
    assert run.number == 5, "the lock of a process that is gone holds nobody up"


def test_a_second_run_of_the_same_process_takes_over(tmp_path: Path, blobs: Pair) -> None:
    first = a_run(tmp_path, blobs)
    first.step()
    second = a_run(tmp_path, blobs, resume=True)
    second.step()
    with pytest.raises(ResumeError, match="taken this folder over"):
        first.step()
    list(second)
    assert a_run(tmp_path, blobs, resume=True).over


def test_a_replayed_candidate_goes_where_it_went(tmp_path: Path, blobs: Pair) -> None:
    """Only the first release of a bundle has a value of its own in the seal: another step length asks another test."""
    method = rt.methods.dpsur(noise_multiplier=2.0, validation_batch_size=50)
    a_run(tmp_path, blobs, method).step()  # no checkpoint is written: the round is repeated
    again = a_run(tmp_path, blobs, method, resume=True)
    again.optimizer.param_groups[0]["lr"] = 5.0
    with pytest.raises(ResumeError, match="cannot be repeated"):
        again.step()
    same = a_run(tmp_path, blobs, method, resume=True)
    same.step()
    assert len(same.ledger) == 1


def test_hooks_that_come_later_are_refused_too(tmp_path: Path, blobs: Pair) -> None:
    run = a_run(tmp_path, blobs, rt.methods.dpsur(noise_multiplier=2.0, validation_batch_size=50))
    run.step()
    run.optimizer.register_step_post_hook(lambda *_: None)
    with pytest.raises(SettingError, match="would see candidates"):
        run.step()
    other = a_run(tmp_path / "other", blobs, rt.methods.dpsur(noise_multiplier=2.0, validation_batch_size=50))
    hook = register_optimizer_step_pre_hook(lambda *_: None)
    try:
        with pytest.raises(SettingError, match="would see candidates"):
            other.step()
    finally:
        hook.remove()
