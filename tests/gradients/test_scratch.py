"""Memory that is freed is kept for the next micro-batch."""

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, torch
from reticent.gradients.scratch import keep_freed_pages

def pass_by():
    parts = [torch.ones(2**20) for _ in range(10)]

keep_freed_pages()
pass_by()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    pass_by()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have other habits")
def test_pages_that_were_freed_are_not_asked_for_again(monkeypatch):
    for setting in ("MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_"):
        monkeypatch.delenv(setting, raising=False)
    faults = int(subprocess.check_output([sys.executable, "-c", FAULTS]))
    assert faults < 10_000  # without the lesson four passes ask for 10,000 pages each
