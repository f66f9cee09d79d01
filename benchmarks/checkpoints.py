"""Checkpoints of a large model: processor seconds and memory for each, and their share of a run's time.

python -m benchmarks.checkpoints [--parameters 125e6] [--out benchmarks/results]
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from benchmarks.tables import made_by
from reticent.checkpoint import SHARE, Folder
from reticent.experiments.record import about_this_machine

LAYERS, ASKED = 5, 30.0
"""How many layers the model has, and after how many seconds a checkpoint is asked for."""


def stack(parameters: float) -> nn.Module:
    """Linear layers, one after the other."""
    width = round((parameters / LAYERS) ** 0.5)
    return nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(LAYERS)))


def _memory(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def above(work: Callable[[], None]) -> float:
    """The most memory that it takes beside what is there before."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _memory("VmRSS")
    work()
    return _memory("VmHWM") - before


def one(folder: Folder, tree: dict[str, object], *, behind: bool) -> tuple[float, float, float]:
    """Seconds in which the run stands still, processor seconds of all, and memory beside the model."""
    stands = [0.0]

    def written() -> None:
        start = time.perf_counter()
        folder.write(tree, behind=behind)
        stands[0] = time.perf_counter() - start
        folder._hold.wait()

    start = time.process_time()
    memory = above(written)
    return stands[0], time.process_time() - start, memory


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.checkpoints", description=__doc__)
    asked.add_argument("--parameters", type=float, default=125e6)
    asked.add_argument("--out", type=Path)
    words = asked.parse_args()
    torch.set_num_threads(1)
    model = stack(words.parameters)
    tree: dict[str, object] = {"model": model.state_dict()}
    size = sum(part.numel() * part.element_size() for part in model.state_dict().values())
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(Path(place) / "run", resume=False, seconds=ASKED)
        for behind in (False, True):
            stands, busy, memory = one(folder, tree, behind=behind)
            took, pause = folder._cost, max(ASKED, folder._cost / SHARE)
            name = "while the run goes on" if behind else "while it waits"
            shares = f"{took:.1f} | {pause:.0f} | {took / (took + pause):.1%}"
            rows.append(f"| {name} | {busy:.2f} | {memory / size:.2f} | {stands:.2f} | {shares} |")
        folder.release()
    command = shlex.join(["python", "-m", "benchmarks.checkpoints", *sys.argv[1:]])
    lines = [
        "# Checkpoints of a large model", "", made_by({"command": command, **about_this_machine().to_json()}), "",
        f"{size / 1e6:.0f} MB of weights, a checkpoint asked for every {ASKED:g} s. Goal: at most {SHARE:.0%} of the "
        "time, and at most 1.2 times what is saved in memory, beside the model.", "",
        "| written | processor s | memory, to what is saved | s the run stands still | s it takes | s to the next | "
        "share of the time |",
        "|---|---|---|---|---|---|---|", *rows, "",
    ]  # fmt: skip
    print("\n".join(lines))
    if words.out is not None:
        (words.out / "checkpoints.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
