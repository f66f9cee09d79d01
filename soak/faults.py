"""Faults at every file operation of every method: the run goes on, and all is as if there had been none."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # loaded once, here: every process below would load it again, for seconds
from torch import nn

import reticent as rt
from reticent.accounting import Budget
from reticent.accounting.ledger import read_entries
from reticent.errors import ReticentError
from reticent.experiments.tracking import JsonLines
from soak.disk import KINDS, Disk
from soak.tally import Tally

SMALL = {"validation_batch_size": 10}
OPTIONS: dict[str, dict[str, Any]] = {
    "dpsur": SMALL,
    "dpsur hidden": SMALL | {"hidden_attempts": True, "cap": 50},
    "sa_dpsgd": SMALL | {"validation_noise": 4.0},
    "pd_sgd": {"noise_std": 0.1, "gamma": 4.0, "needed": 2},
    "dpagd": {"longest": 1.0, "max_grad_norm": 0.5},
}
METHODS = tuple(sorted({*rt.methods.names(), *OPTIONS}))
ADAPTIVE = ("dpagd", "dpis")
ROUNDS = 3


def planned(name: str) -> tuple[rt.methods.Method, dict[str, Any]]:
    """A method, and how long its runs are."""
    method = rt.methods.get(name.split()[0], **OPTIONS.get(name, {}))
    plan: dict[str, Any] = {"rounds": ROUNDS, "delta": 1e-3, "batch_size": 20}
    if name in ADAPTIVE:
        plan["budget"] = Budget(8.0, 1e-3)
    elif method.noise_multiplier is None:
        method = replace(method, noise_multiplier=2.0)
    return method, plan


def a_run(name: str, folder: Path, *, resume: bool) -> rt.Run:
    """A small run of a method, always the same one."""
    rng = torch.Generator().manual_seed(1)
    y = torch.arange(60) % 2
    examples = torch.randn(60, 3, generator=rng) + 3.0 * y[:, None], y
    torch.manual_seed(0)
    net = nn.Linear(3, 2)
    method, plan = planned(name)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    run = rt.Run(
        net, optimizer, examples, method=method, folder=folder, resume=resume, checkpoint_seconds=0.0, seed=3, **plan
    )
    run.tellers.append(JsonLines(folder / "rounds.jsonl"))
    return run


def finish(name: str, folder: Path) -> None:
    """Run to the end; what is refused for want of a disk is tried again, in the same process, as in a notebook."""
    run: rt.Run | None = None
    for left in reversed(range(4)):
        try:
            if run is None:
                run = a_run(name, folder, resume=True)
            list(run)
            break
        except ReticentError:
            if not left:
                raise


def what_came(folder: Path) -> dict[str, object]:
    """Everything that must be as without the fault."""
    from reticent import checkpoint

    tree = checkpoint.read(checkpoint.checkpoint_of(folder))
    places = [(entry.round, entry.query) for entry in read_entries(folder / "ledger.jsonl")]
    return {
        "ledger": (folder / "ledger.jsonl").read_bytes(),
        "charges": len(places),
        "charged once": len(places) == len(set(places)),
        "weights": {name: part.tolist() for name, part in tree["model"].items()},
        "over": tree["over"],
        "rounds": [json.loads(line)["round"] for line in (folder / "rounds.jsonl").read_bytes().splitlines()],
    }


def apart(work: Callable[[], None]) -> tuple[int, str]:
    """Do something in a process of its own; its exit code, and the traceback that it ended with."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        code, said = 0, ""
        try:
            with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
                warnings.simplefilter("ignore")
                work()
        except BaseException:
            code, said = 1, traceback.format_exc()
        with os.fdopen(there, "w") as pipe:
            pipe.write(" | ".join(line.strip() for line in said.splitlines()[-9:] if "^^^" not in line))
        os._exit(code)
    os.close(there)
    with os.fdopen(here) as pipe:
        said = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def cases(
    name: str, place: Path, kinds: tuple[str, ...], each: int | None, seed: int
) -> Iterator[tuple[str, str | None]]:
    """Each operation of a method's run, failing in each way; or `each` of these cases, chosen by chance."""
    whole, count = place / "whole", place / "count"
    disk = Disk(whole, None, "")
    method, plan = planned(name)
    rt.methods.plan(method, size=60, adjacency="zero-out", **plan)  # priced once, not in every process

    def counted() -> None:
        with disk.installed():
            finish(name, whole)
        count.write_text(str(disk.count))

    code, said = apart(counted)
    if code:
        yield f"{name}", said
        return
    expected = what_came(whole)
    all_of_them = [(number, kind) for number in range(1, int(count.read_text()) + 1) for kind in kinds]
    chosen = all_of_them if each is None else random.Random(f"{seed} {name}").sample(all_of_them, each)
    for number, kind in chosen:
        yield kind, _case(name, place / "run", number, kind, expected)


def _case(name: str, folder: Path, number: int, kind: str, expected: dict[str, object]) -> str | None:
    shutil.rmtree(folder, ignore_errors=True)

    def failing() -> None:
        with Disk(folder, number, kind).installed():
            finish(name, folder)

    where = f"{name}, operation {number}"
    code, said = apart(failing)
    if code == 1:
        return f"{where}: {said}"
    code, said = apart(lambda: finish(name, folder))
    if code:
        return f"{where}, going on: {said}"
    try:
        found = what_came(folder)
    except (OSError, ReticentError, ValueError) as error:
        return f"{where}: {error}"
    changed = [part for part in expected if found[part] != expected[part]]
    return f"{where}: {changed} differ" if changed else None


def soak_faults(
    methods: tuple[str, ...] = METHODS, kinds: tuple[str, ...] = KINDS, each: int | None = None, *, seed: int = 0
) -> Tally:
    """Faults at the operations of some methods: at all of them, or at `each` of every method's."""
    tally = Tally("faults")
    for name in methods:
        with tempfile.TemporaryDirectory() as place:
            for kind, problem in cases(name, Path(place), kinds, each, seed):
                tally.add(kind, problem)
    return tally
