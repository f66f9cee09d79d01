"""Many runs survive everything: a killed worker, a killed parent, being asked again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reticent.errors import DataError, ResumeError, SettingError
from reticent.experiments.job import Job, claim, perform
from reticent.experiments.locks import locked
from reticent.experiments.recipe import Recipe
from reticent.experiments.sweep import sweep
from reticent.experiments.training import train

SCRIPT = """
import sys
from pathlib import Path
from reticent.experiments.job import Job
from reticent.experiments.recipe import Recipe
from reticent.experiments.sweep import sweep

class Speaker:
    def began(self, job): print("began", job.name, flush=True)
    def advanced(self, job, done, total): print("advanced", job.name, done, flush=True)
    def ended(self, job, record): print("ended", job.name, flush=True)

def jobs():
    return [Job(name=name, label="dpsgd", recipe=Recipe(data="digits", epochs=epochs, epsilon=3.0, seed=0))
            for name, epochs in {epochs}.items()]

if __name__ == "__main__":
    sweep(jobs(), Path(sys.argv[1]), processes=2, watcher=Speaker())
"""
# When run2 has come some way, run0 is done, and mostly run1 is at work and run3 was not begun.
EPOCHS = {"run0": 1.0, "run1": 40.0, "run2": 10.0, "run3": 1.0}


def jobs(**epochs: float) -> list[Job]:
    return [
        Job(name=name, label="dpsgd", recipe=Recipe(data="digits", epochs=length, epsilon=3.0, seed=0))
        for name, length in epochs.items()
    ]


def essence(out: Path) -> dict[str, Any]:
    """What must not depend on how often a sweep was interrupted."""
    records = map(json.loads, (out / "results.jsonl").read_text().splitlines())
    kept = ("status", "accuracy", "classes", "epsilon", "epsilon_by_round", "ledger", "rounds", "kept")
    return {record["run"]: {name: record[name] for name in kept} for record in records}


def lines_of_rounds(out: Path) -> list[list[int]]:
    files = sorted(out.glob("runs/*/rounds.jsonl"))
    return [[json.loads(line)["round"] for line in file.read_text().splitlines()] for file in files]


@pytest.mark.slow
def test_after_kill_9_of_everything_the_same_call_ends_as_if_nothing_had_happened(tmp_path: Path, seen: Any) -> None:
    script = tmp_path / "sweep.py"
    script.write_text(SCRIPT.replace("{epochs}", repr(EPOCHS)))
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    parent = subprocess.Popen([sys.executable, str(script), str(killed)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert any(line.startswith("advanced run2 10") for line in parent.stdout)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    for name in EPOCHS:
        with locked(killed / "runs" / name):
            pass  # nobody works there any more: the workers went with their parent
    done, begun = (
        {path.relative_to(killed).parts[1] for path in killed.glob(f"runs/*/{file}")}
        for file in ("record.json", "private/checkpoint.safetensors")
    )
    assert done
    assert "run2" in begun - done, "the kill must hit a run at work"
    again = sweep(jobs(**EPOCHS), killed, processes=2, watcher=seen)
    assert set(seen.names("began")) == EPOCHS.keys() - done, "what is done is not run again"
    assert {result.run for result in again if result.effort.resumed} == begun - done
    sweep(jobs(**EPOCHS), whole, processes=2, watcher=seen)
    assert essence(killed) == essence(whole)
    assert lines_of_rounds(killed) == lines_of_rounds(whole), "a round is missing or written twice"


def test_a_killed_worker_is_reported_and_the_others_finish(tmp_path: Path, seen: Any) -> None:
    class Killer(type(seen)):  # type: ignore[misc]
        def advanced(self, job: Job, done: int, total: int) -> None:
            if job.name == "long" and done == 5:
                os.kill(worker_in(tmp_path / "runs" / job.name), signal.SIGKILL)

    results = sweep(jobs(short=1.0, long=30.0, other=1.0), tmp_path, processes=2, watcher=Killer())
    assert [result.status for result in results] == ["done", "failed", "done"]
    assert "SIGKILL" in results[1].error
    lines = map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())
    assert {line["run"]: line["status"] for line in lines} == {"short": "done", "long": "failed", "other": "done"}
    again = sweep(jobs(short=1.0, long=30.0, other=1.0), tmp_path, processes=2, watcher=seen)
    assert [result.status for result in again] == ["done"] * 3
    assert seen.names("began") == ["long"]
    assert again[1].effort.resumed


def worker_in(folder: Path) -> int:
    """The process that holds the lock of a folder."""
    inode = (folder / ".lock").stat().st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        if re.search(rf":{inode} ", line):
            return int(line.split()[4])
    raise AssertionError("nobody works there")


def test_a_failed_run_may_be_tried_again_with_other_settings(tmp_path: Path, seen: Any) -> None:
    bad = Job(name="run", label="dpsgd", recipe=Recipe(data="digits", epochs=1.0, epsilon=-1.0, seed=0))
    good = Job(name="run", label="dpsgd", recipe=Recipe(data="digits", epochs=1.0, epsilon=3.0, seed=0))
    assert sweep([bad], tmp_path, processes=1, watcher=seen)[0].status == "failed"
    assert sweep([good], tmp_path, processes=1, watcher=seen)[0].status == "done"


def test_runs_are_the_same_however_many_at_a_time(tmp_path: Path, seen: Any) -> None:
    for processes in (1, 2):
        sweep(jobs(one=1.0, two=2.0), tmp_path / str(processes), processes=processes, watcher=seen)
    assert essence(tmp_path / "1") == essence(tmp_path / "2")


def test_impossible_sweeps_are_refused(tmp_path: Path, seen: Any) -> None:
    with pytest.raises(SettingError, match="at least one process"):
        sweep(jobs(one=1.0), tmp_path, processes=0, watcher=seen)
    with pytest.raises(SettingError, match="same name"):
        sweep(jobs(one=1.0) * 2, tmp_path, processes=1, watcher=seen)


def test_a_folder_of_an_older_version_is_gone_on_with(tmp_path: Path) -> None:
    """A setting that is newer than the folder, and not used, is no reason to refuse it."""
    job = Job(name="one", label="one", recipe=Recipe(data="digits", epsilon=3.0, epochs=1, seed=0))
    perform(job, tmp_path, lambda _done, _total: None)
    for name in ("job.json", "result.json"):
        stored = json.loads((tmp_path / name).read_text())
        del stored["recipe"]["centre"]
        stored.pop("sha256", None)
        (tmp_path / name).write_text(json.dumps(stored))
    (tmp_path / "record.json").unlink()
    claim(job, tmp_path)
    assert perform(job, tmp_path, lambda _done, _total: None).status == "done"
    other = replace(job, recipe=replace(job.recipe, centre=20.0))
    with pytest.raises(ResumeError, match="centre"):
        claim(other, tmp_path)


@pytest.mark.parametrize("name", ["job.json", "record.json"])
@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"recipe": 3}'])
def test_damaged_files_are_told_before_anything_is_run(tmp_path: Path, seen: Any, name: str, text: str) -> None:
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    (folder / name).write_text(text)
    with pytest.raises(DataError, match=name):
        sweep(jobs(one=1.0), tmp_path, processes=1, watcher=seen)
    if name == "record.json":
        with pytest.raises(DataError, match=name):
            sweep(jobs(another=1.0), tmp_path, processes=1, watcher=seen)
    assert seen.events == []


def test_a_damaged_answer_is_told_when_a_run_is_resumed(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(DataError, match=r"result\.json is not JSON"):
        train(Recipe(data="digits", epsilon=3.0, epochs=1, seed=0), tmp_path, resume=True)


def test_a_recipe_of_a_newer_version_is_refused_by_the_name_of_its_setting(tmp_path: Path) -> None:
    recipe = Recipe(data="digits", epsilon=3.0, epochs=1, seed=0)
    train(recipe, tmp_path)
    stored = json.loads((tmp_path / "result.json").read_text())
    stored["recipe"]["colour"] = "blue"
    del stored["sha256"]
    (tmp_path / "result.json").write_text(json.dumps(stored))
    with pytest.raises(DataError, match="colour is not known here"):
        train(recipe, tmp_path, resume=True)
