"""torchrun itself: a rank that is killed is started again with the others, and the run goes on from its checkpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reticent.accounting.ledger import read_ledger
from reticent.certificate import verify

SCRIPT = """
import os, signal, sys
import torch, reticent as rt

x = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
y = (x.sum(1) > 0).long()

rank, life = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
right, rounds = rt.Run.step, 3 if rank == life % 2 and life < 3 else 99

def step(run):  # the first time the first rank is killed, the second time the other, the third time the first
    global rounds
    if (rounds := rounds - 1) == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return right(run)

rt.Run.step = step
trained = rt.fit(torch.nn.Linear(4, 2), (x, y), epsilon=3.0, delta=1e-5, epochs=1, batch_size=20, lr=0.5, size=200,
                 loss="cross_entropy", folder=sys.argv[1], resume=True)
assert life == 3
"""


@pytest.mark.slow
def test_ranks_that_are_killed_three_times_are_started_again_and_the_run_goes_on(tmp_path: Path) -> None:
    script, out = tmp_path / "train.py", tmp_path / "run"
    script.write_text(SCRIPT)
    subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
            *("--max-restarts", "3", str(script), str(out)),
        ],
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=1800,
    )
    assert len(read_ledger(out / "ledger.jsonl").entries) == 10
    assert json.loads((out / "card.json").read_text())["rounds"] == 10
    assert verify(out).ok
