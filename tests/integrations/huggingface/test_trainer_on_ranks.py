"""The Trainer under torchrun: two processes are one run, with the draws, the noise and the ledger of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers", reason="the extra reticent[hf] is not installed")

from reticent.certificate import verify

SCRIPT = Path(__file__).with_name("on_ranks.py")


def trained(folder: Path, processes: int) -> str:
    """What the script says of its guarantee."""
    started = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    before = [] if processes == 1 else started
    own = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, *before, str(SCRIPT), str(folder)]
    done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()[-1]


def events(folder: Path) -> list[object]:
    lines = (folder / "hub" / "ledger.jsonl").read_text().splitlines()
    return [json.loads(line).get("event") for line in lines]


@pytest.mark.slow
def test_two_processes_are_one_run(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert trained(one, 1) == trained(two, 2)
    assert events(one) == events(two)
    ours, theirs = (torch.load(folder / "weights.pt", weights_only=True) for folder in (one, two))
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)
    assert verify(two / "hub").wrong == []
