"""The benchmark's own steps can be made: it is not run in the tests, and would break unseen."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from benchmarks.cost import BATCHES, RANKS, WIDTHS, Machine, fitted, parameters_of, sent
from benchmarks.models import Case
from benchmarks.peers import PEERS
from benchmarks.tables import write_plot, write_table
from torch import nn

SMALL = Case(lambda: nn.Sequential(nn.Flatten(), nn.Linear(4, 3)), (4,), 8, classes=3)


@pytest.mark.parametrize("peer", ["sgd", "ours", "ours in a run", "vmap"])
def test_a_peer_that_needs_no_other_package_steps(peer):
    torch.manual_seed(0)
    step = PEERS[peer](SMALL)
    step()
    step()


def test_the_cost_model_finds_the_constants_that_made_the_times():
    known = Machine(2e-3, 3e-6, 4e-11, 5e-9, move=6e-9, bandwidth=7e8, delay=8e-4)
    points = {
        (width, batch, ranks): known.step(parameters_of(width), batch, ranks)
        for width in WIDTHS
        for batch in BATCHES
        for ranks in RANKS
    }
    found = asdict(fitted(points, known.noise))
    assert found == pytest.approx(asdict(known), rel=1e-6)
    assert sent(1e6, 1) == 0
    assert sent(1e6, 2) == 4e6  # half of the sums to the other, half of what is released


def test_the_table_is_written_from_the_records_that_are_there(tmp_path):
    lines = (Path(__file__).parent.parent / "benchmarks/results/results.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    write_table(records, tmp_path / "table.md")
    write_plot(records, tmp_path / "plot.svg")
    assert "| mnist2048 |" in (tmp_path / "table.md").read_text()
