"""Going on with a run by its folder alone, and what is said of a batch larger than the data."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reticent.cli import app
from reticent.errors import SettingError
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import train
from reticent.results import read_result

RETICENT = [sys.executable, "-c", "from reticent.cli import main; main()"]


@pytest.mark.slow
def test_a_killed_run_goes_on_by_its_folder_alone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    said = ["train", "--data", "digits", "--epsilon", "3", "--epochs", "8", "--batch-size", "64", "--seed", "0"]
    begun = subprocess.Popen(
        [*RETICENT, *said, "--out", str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    rounds = folder / "rounds.jsonl"
    while begun.poll() is None and (not rounds.exists() or len(rounds.read_text().splitlines()) < 5):
        time.sleep(0.01)
    os.kill(begun.pid, signal.SIGKILL)
    begun.wait()
    assert not (folder / "result.json").exists(), "it ended before it was killed"
    subprocess.run([*RETICENT, "train", "--resume", "--out", str(folder)], check=True, capture_output=True)
    subprocess.run([*RETICENT, *said, "--out", str(tmp_path / "alone")], check=True, capture_output=True)
    resumed, alone = read_result(folder), read_result(tmp_path / "alone")  # each by a process with as many threads
    assert (resumed.accuracy, resumed.rounds, resumed.epsilon) == (alone.accuracy, alone.rounds, alone.epsilon)


def test_a_folder_without_settings_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="give those that the run was started with"):
        CliRunner().invoke(app, ["train", "--resume", "--out", str(tmp_path)], catch_exceptions=False)


def test_a_batch_larger_than_the_data_is_said() -> None:
    with pytest.warns(UserWarning, match="there are 1437 examples: all take part"):
        train(Recipe(data="digits", noise_multiplier=2.0, epochs=1.0, batch_size=9999.0, seed=0))
