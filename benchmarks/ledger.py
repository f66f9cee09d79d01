"""What a line of the ledger costs: python benchmarks/ledger.py prints the share that is not waiting for the disk."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from unittest import mock

from reticent.accounting import Entry, Gaussian, Ledger, Subsampled

STEP = Subsampled(0.1781489213639527, Gaussian(2.835873126041058))


def median_seconds(lines: int) -> float:
    """The median time of one `record`."""
    with tempfile.TemporaryDirectory() as folder:
        ledger, taken = Ledger(Path(folder) / "ledger.jsonl"), []
        for number in range(lines):
            entry = Entry(number, 0, STEP, "35e61cab493be490779d066358513f79")
            began = time.perf_counter()
            ledger.record(entry)
            taken.append(time.perf_counter() - began)
    return statistics.median(taken)


if __name__ == "__main__":
    whole = median_seconds(1000)
    with mock.patch.object(os, "fdatasync", return_value=None):
        alone = median_seconds(5000)
    print(f"a line takes {1e6 * whole:.0f} microseconds, {1e6 * alone:.0f} of them without the disk")
