"""`python -m benchmarks.before REVISION`: our step at an earlier revision and now, in turn; the ratio of CPU times.

The earlier code is checked out into a folder of its own for as long as it takes. One thread, and processor time instead
of the clock, so that a busy machine does not decide; the same code runs twice, which tells the noise of measuring.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.models import CASES
from benchmarks.race import Runner

HERE = Path(__file__).parent.parent
CLOCK = "import time, runpy, sys; time.perf_counter = time.process_time; sys.argv[0] = 'worker'; "
WORKER = CLOCK + "runpy.run_module('benchmarks.worker', run_name='__main__')"
"""Older workers know one clock only: it is set before they look at it."""


def start(name: str, checkout: Path, case: str, peer: str) -> Runner:
    """A worker that runs the code of a checkout."""
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{checkout / 'src'}:{checkout}"}
    command = [sys.executable, "-c", WORKER, case, peer, "1", "cpu"]
    pipe = subprocess.PIPE
    return Runner(name, subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env, cwd=checkout))


def compare(case: str, peer: str, earlier: Path, rounds: int, seconds: float) -> dict[str, float | str]:
    """Medians of interleaved turns, as ratios to the earlier code."""
    runners = [start("before", earlier, case, peer), start("now", HERE, case, peer), start("again", HERE, case, peer)]
    for runner in runners:
        if "absent" in (answer := runner.answer()):
            raise SystemExit(f"{case}, {runner.peer}: {answer['absent']}")
    one = min(float(t) for runner in runners for t in runner.ask("steps 3")["times"])  # type: ignore[attr-defined]
    steps = max(1, min(200, round(seconds / one)))
    for turn in range(rounds):
        for i in range(len(runners)):
            runner = runners[(turn + i) % len(runners)]
            runner.times.append(statistics.median(runner.ask(f"steps {steps}")["times"]))  # type: ignore[call-overload]
    for runner in runners:
        runner.ask("end")
        runner.process.wait()
    before, now, again = (statistics.median(runner.times) for runner in runners)
    return {
        "case": case,
        "before_ms": 1e3 * before,
        "now_ms": 1e3 * now,
        "ratio": now / before,
        "again": again / before,
    }


def main() -> None:
    """Compare case by case, and write what came of it beside the other results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.before", description=__doc__)
    parser.add_argument("revision", help="of the code to compare with")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--peer", default="ours")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a turn lasts, about")
    parser.add_argument("--out", type=Path, default=HERE / "benchmarks/results/before.jsonl")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        git = ["git", "-C", str(HERE)]
        subprocess.run([*git, "worktree", "add", "--detach", folder, asked.revision], check=True, capture_output=True)
        revisions = [
            subprocess.run(["git", "-C", place, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
            for place in (folder, str(HERE))
        ]
        about = {"before": revisions[0].strip(), "now": revisions[1].strip(), "peer": asked.peer, "threads": 1}
        try:
            for case in filter(None, asked.cases.split(",")):
                found = compare(case, asked.peer, Path(folder), asked.rounds, asked.seconds)
                print(
                    "{case:16} {before_ms:9.2f} -> {now_ms:9.2f} ms  x{ratio:.3f} (again x{again:.3f})".format(**found)
                )
                with asked.out.open("a") as file:
                    file.write(json.dumps(found | about) + "\n")
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", folder], check=True)


if __name__ == "__main__":
    main()
