"""kill -9 at any moment, then resume: the same weights, the same ledger, the same epsilon."""

from __future__ import annotations

import json
import multiprocessing
import random
import shutil
import time
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
import torch
from tests import quick
from torch import nn

import reticent as rt
from reticent.errors import ResumeError

# Forked from a server that has torch loaded: a real process each, without seconds of imports each.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["torch", "torch._dynamo", "reticent.run"])

SCRIPT = """
import torch, time
from torch import nn
import reticent as rt
torch.set_num_threads(1)
torch.manual_seed(0)
x, y = torch.randn(300, 6), torch.randint(0, 3, (300,))
net = nn.Sequential(nn.Linear(6, 5), nn.Dropout(0.2), nn.Tanh(), nn.Linear(5, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
run = rt.Run(net, optimizer, (x, y), method=rt.methods.get(method, noise_multiplier=1.2), batch_size=40, rounds=60,
             seed=5,
             scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 20), folder=folder, resume=True,
             checkpoint_seconds=0.02)
pipe.send("ready")
for step in run:
    pipe.send(step.number)
    time.sleep(0.001)
torch.save(net.state_dict(), folder + "/final.pt")
pipe.send(run.guarantee().epsilon)
"""


def start(folder: Path, method: str) -> tuple[BaseProcess, Connection]:
    """Begin or resume the run in a process of its own; returns when its first round is about to begin."""
    here, there = PROCESSES.Pipe()
    process = PROCESSES.Process(target=exec, args=(SCRIPT, {"folder": str(folder), "pipe": there, "method": method}))
    process.start()
    there.close()
    assert here.recv() == "ready"
    return process, here


def finish(folder: Path, method: str) -> tuple[dict[str, Any], list[str], float]:
    process, pipe = start(folder, method)
    return ended(folder, process, pipe)


def ended(folder: Path, process: BaseProcess, pipe: Connection) -> tuple[dict[str, Any], list[str], float]:
    while isinstance(epsilon := pipe.recv(), int):
        pass  # a round
    process.join(60)
    assert process.exitcode == 0
    return torch.load(folder / "final.pt"), (folder / "ledger.jsonl").read_text().splitlines(), epsilon


@pytest.mark.parametrize(("method", "kills"), [("dpsgd", 20), ("band_mf", 8), ("blt", 4)])
def test_killed_at_random_moments_ends_as_if_nothing_had_happened(tmp_path: Path, method: str, kills: int) -> None:
    whole = start(tmp_path / "whole", method)
    began = time.perf_counter()
    weights, ledger, epsilon = ended(tmp_path / "whole", *whole)
    round_takes = (time.perf_counter() - began) / len(ledger)
    chance, rounds_seen = random.Random(0), set()
    folder = tmp_path / "killed"
    for _ in range(kills):
        process, pipe = start(folder, method)
        for _ in range(chance.randrange(len(ledger) // 2)):
            if not isinstance(pipe.recv(), int):
                break  # it got through
        time.sleep(chance.uniform(0.0, round_takes))
        process.kill()  # SIGKILL; a run that has just got through is past it
        process.join()
        released = len((folder / "ledger.jsonl").read_text().splitlines())
        rounds_seen.add(released)
        if released == len(ledger):  # it got through: begin again, so that every kill hits a living run
            shutil.rmtree(folder)
    assert len(rounds_seen) > kills // 6, "the kills all fell in the same place"
    again, ledger_again, epsilon_again = finish(folder, method)
    assert all(torch.equal(weights[name], again[name]) for name in weights)
    assert ledger == ledger_again
    assert epsilon == epsilon_again


def small(folder: Path, *, resume: bool = True, **changes: Any) -> rt.Run:
    torch.manual_seed(0)
    x, y = torch.randn(50, 3), torch.randint(0, 2, (50,))
    settings = {"method": rt.methods.dpsgd(noise_multiplier=1.0), "batch_size": 10, "rounds": 6, "seed": None} | changes
    x = settings.pop("x", x)
    model = settings.pop("model", nn.Linear(3, 2))
    return rt.Run(model, torch.optim.SGD(model.parameters(), lr=0.1), (x, y), folder=folder, resume=resume, **settings)


def advance(run: rt.Run, rounds: int) -> None:
    for _ in range(rounds):
        run.step()


def test_rounds_after_the_last_checkpoint_are_replayed_and_charged_once(tmp_path: Path) -> None:
    """Without a seed too: the coins are in the checkpoint."""
    first = small(tmp_path)
    advance(first, 2)
    first.save()
    advance(first, 2)
    expected = [p.clone() for p in first.model.parameters()]
    again = small(tmp_path)
    assert again.number == 2
    advance(again, 2)
    assert all(torch.equal(p, q) for p, q in zip(again.model.parameters(), expected, strict=True))
    assert len(again.ledger) == 4
    list(again)
    assert again.ledger.tally() == again.plan.tally()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"batch_size": 20}, "settings"),
        ({"method": rt.methods.dpsgd(noise_multiplier=2.0)}, "settings|method"),
        ({"rounds": 7}, "rounds"),
        ({"model": nn.Linear(3, 3)}, "parameters"),
        ({"x": torch.zeros(50, 3)}, "examples differ"),
        ({"seed": 3}, "seed"),
    ],
)
def test_resume_with_something_else_is_refused_by_name(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    advance(small(tmp_path), 2)
    with pytest.raises(ResumeError, match=says):
        small(tmp_path, **changes)


def test_changed_weights_in_the_checkpoint_do_not_get_the_old_noise(tmp_path: Path) -> None:
    first = small(tmp_path)
    advance(first, 2)  # released, but the checkpoint still says round 0
    again = small(tmp_path)
    with torch.no_grad():
        next(again.model.parameters())[0].add_(1.0)  # one class only: the same for all would leave the softmax as it is
    with pytest.raises(ResumeError, match="would reveal it"):
        again.step()


def test_a_folder_with_a_run_is_not_overwritten(tmp_path: Path) -> None:
    advance(small(tmp_path), 1)
    with pytest.raises(ResumeError, match="holds a run already"):
        small(tmp_path, resume=False)


def test_an_error_in_the_middle_loses_nothing(tmp_path: Path) -> None:
    run = small(tmp_path)
    advance(run, 2)
    before = [p.clone() for p in run.model.parameters()]
    run.optimizer.step = lambda: 1 / 0  # type: ignore[method-assign, assignment]
    with pytest.raises(ZeroDivisionError):
        run.step()
    assert all(torch.equal(p, q) for p, q in zip(run.model.parameters(), before, strict=True))
    again = small(tmp_path)
    assert again.number == 2
    list(again)
    assert again.ledger.tally() == again.plan.tally()


def test_an_unwritable_folder_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResumeError, match="cannot write"):
        small(tmp_path / "file" / "run")


def test_a_full_disk_is_a_clear_error_and_the_old_checkpoint_stays(tmp_path: Path) -> None:
    from reticent.checkpoint import read, write

    path = tmp_path / "checkpoint"
    write(path, {"number": 1})
    script = (
        "import resource, signal, sys, pathlib, torch\n"
        "from reticent.checkpoint import write\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "write(pathlib.Path(sys.argv[1]), {'big': torch.zeros(10000)})\n"
    )
    done = quick.run(script, path)
    assert done.returncode != 0
    assert "cannot write" in done.stderr
    assert read(path) == {"number": 1}


def test_checkpoints_are_for_the_owner_only_and_hold_no_pickle(tmp_path: Path) -> None:
    advance(small(tmp_path), 1)
    path = tmp_path / "private" / "checkpoint.safetensors"
    assert path.stat().st_mode & 0o077 == 0
    header = json.loads(path.read_bytes()[8 : 8 + int.from_bytes(path.read_bytes()[:8], "little")])
    assert "__metadata__" in header
