"""The race: all peers on one case, in turn and in rotating order, each in a process of its own."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass, field

# glibc gives big blocks back after every step and pays for fresh pages again; this keeps them.
TUNED = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000", "MALLOC_TOP_PAD_": "100000000"}

# Seconds: nobody waits for many steps of a peer that needs longer than this for one.
SLOW = 5.0


@dataclass
class Runner:
    """One peer's process and its times so far."""

    peer: str
    process: subprocess.Popen[str]
    times: list[float] = field(default_factory=list)

    def ask(self, line: str) -> dict[str, object]:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> dict[str, object]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line.strip() else {"absent": "died"}


def start(case: str, peer: str, threads: int, malloc: str, clock: str) -> Runner:
    env = os.environ | {"OMP_NUM_THREADS": str(threads)} | (TUNED if malloc == "tuned" else {})
    command = [sys.executable, "-m", "benchmarks.worker", case, peer, str(threads), clock]
    pipe = subprocess.PIPE
    return Runner(
        peer, subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=env)
    )


def race(
    case: str, peers: list[str], *, threads: int, malloc: str, clock: str, rounds: int, seconds: float
) -> list[dict]:
    """Give one record a peer: median time, ratio to plain SGD, peak memory; or why it is absent."""
    runners, records = [], []
    for peer in peers:
        runner = start(case, peer, threads, malloc, clock)
        answer = runner.answer()
        if "absent" in answer:
            records.append({"peer": peer, "absent": answer["absent"]})
        else:
            runners.append(runner)
    steps, turns = {}, {}
    for runner in runners:
        one = min(runner.ask("steps 1")["times"])  # warm up, and see how many steps a turn is worth
        if one < SLOW:
            one = min(runner.ask("steps 2")["times"])
        steps[runner.peer] = max(1, min(200, round(seconds / max(one, 1e-6))))
        turns[runner.peer] = rounds if one < SLOW else min(rounds, 2)
    for turn in range(rounds):
        for i in range(len(runners)):
            runner = runners[(turn + i) % len(runners)]
            if turn < turns[runner.peer]:
                runner.times += runner.ask(f"steps {steps[runner.peer]}")["times"]
    for runner in runners:
        peak = runner.ask("end")["peak"]
        runner.process.wait()
        times = sorted(runner.times)
        quarter = len(times) // 4
        records.append(
            {
                "peer": runner.peer,
                "ms": 1e3 * statistics.median(times),
                "low": 1e3 * times[quarter],
                "high": 1e3 * times[-1 - quarter],
                "steps": len(times),
                "peak": peak,
            }
        )
    shared = {"case": case, "threads": threads, "malloc": malloc, "clock": clock}
    base = next((record["ms"] for record in records if record["peer"] == "sgd" and "ms" in record), None)
    for record in records:
        record |= shared
        if base and "ms" in record:
            record["ratio"] = record["ms"] / base
    return records
