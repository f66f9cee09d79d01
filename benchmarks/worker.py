"""A worker: one peer on one case in a process of its own; it steps when told to, and at the end tells its peak."""

from __future__ import annotations

import json
import os
import resource
import sys
import time

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
"""CPU time is the fairer one with a single thread on a busy machine; with several, those that wait count too."""


def serve(case: str, peer: str, threads: int, clock: str) -> None:
    """Answer `steps n` with n times in seconds, and `end` with the peak memory in MB; one JSON line each."""
    os.environ.setdefault("XLA_FLAGS", f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}")
    import torch

    import benchmarks.networks  # noqa: F401 - adds its cases
    from benchmarks.models import CASES
    from benchmarks.peers import PEERS, Absent

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    try:
        step = PEERS[peer](CASES[case])
        step()
    except Absent as reason:
        _say({"absent": str(reason)})
        return
    except Exception as reason:  # a peer that fails is a result, not the end of the run
        _say({"absent": f"failed: {type(reason).__name__}: {reason}"[:200]})
        return
    _say({"ready": True})
    now = CLOCKS[clock]
    for line in sys.stdin:
        words = line.split()
        if words[0] == "end":
            _say({"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024})
            return
        times = []
        for _ in range(int(words[1])):
            start = now()
            step()
            times.append(now() - start)
        _say({"times": times})


def _say(answer: object) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
