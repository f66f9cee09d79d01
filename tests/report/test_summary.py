"""Means, intervals and gains over seeds."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import t

from reticent.report.summary import Spread, summarise, to_csv

accuracies = st.lists(st.floats(0.0, 1.0), min_size=3, max_size=8)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(accuracies)
def test_the_interval_is_students(values: list[float]) -> None:
    spread = Spread.of(values)
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    low, high = t.interval(0.95, len(values) - 1, np.mean(values), error) if error > 0 else (values[0], values[0])
    assert spread.kind == "t95"
    assert (spread.low, spread.high) == pytest.approx((low, high), abs=1e-9)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    hits = sum(s.low <= 0.0 <= s.high for s in (Spread.of(rng.normal(size=3).tolist()) for _ in range(4000)))
    assert abs(hits / 4000 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 4000)


def test_few_seeds_make_no_interval() -> None:
    assert Spread.of([0.5]) == Spread(0.5, 0.5, 0.5, "single")
    assert Spread.of([0.4, 0.8]) == Spread(pytest.approx(0.6), 0.4, 0.8, "range")  # type: ignore[arg-type]


def test_gains_are_taken_seed_by_seed(records: Any) -> None:
    """The seeds differ by 20 points, the gain is one point in each: it must not drown in the seeds."""
    runs = [records.run("dpsgd", 3.0, seed, 0.5 + 0.2 * seed) for seed in range(3)]
    runs += [records.run("auto_s", 3.0, seed, 0.51 + 0.2 * seed) for seed in range(3)]
    gain = summarise(records.results(runs))[1].gain
    assert gain is not None
    assert (gain.low, gain.mean, gain.high) == pytest.approx((0.01, 0.01, 0.01))


def test_only_what_is_proved_is_compared(records: Any) -> None:
    rows = {
        row.label: row for row in summarise(records.results(records.everything())) if row.target_epsilon in (None, 3.0)
    }
    assert rows["auto_s"].gain is not None
    assert rows["pd_sgd"].gain is rows["plain"].gain is rows["dpsgd"].gain is None
    assert rows["pd_sgd"].epsilon is None


def test_a_failed_seed_is_counted_and_left_out(records: Any) -> None:
    runs = [records.run("dpsgd", 3.0, 0, 0.8), records.failed("dpsgd", 3.0, 1, "no")]
    (row,) = summarise(records.results(runs))
    assert (row.seeds, row.failed) == (1, 1)
    assert row.accuracy == Spread(0.8, 0.8, 0.8, "single")


def test_the_proved_epsilon_of_a_row_is_the_worst_of_its_seeds(records: Any) -> None:
    proved = [records.guarantee(epsilon) for epsilon in (2.9, 3.0, None)]
    runs = records.results(
        [records.run("dpsgd", 3.0, seed, 0.8, guarantee=stated) for seed, stated in enumerate(proved)]
    )
    assert summarise(runs[:2])[0].epsilon == runs[1].epsilon
    assert summarise(runs)[0].epsilon is None


def test_csv_has_one_line_a_row_and_reads_back(records: Any) -> None:
    rows = summarise(records.results(records.everything()))
    lines = list(csv.DictReader(to_csv(rows).splitlines()))
    assert [line["label"] for line in lines] == [row.label for row in rows]
    assert float(lines[0]["accuracy_mean"]) == rows[0].accuracy.mean  # type: ignore[union-attr]
    assert lines[-1]["status"] == "failed"
