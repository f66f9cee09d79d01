"""Work in processes of this machine: answers as they come, failures in words, and one that stops nobody else."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.executors import works

from reticent.errors import SettingError
from reticent.executors import Ended, each, executor_for
from reticent.experiments.job import Job
from reticent.experiments.recipe import Recipe
from reticent.experiments.sweep import _performed


def told(*todo: tuple[str, Any], jobs: int = 2, **more: Any) -> dict[str, Ended]:
    return {over.name: over for over in each(partial(executor_for, None, jobs), todo, **more)}


def test_one_that_fails_and_one_that_dies_stop_nobody_else(tmp_path: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    found = told(
        ("dies", partial(works.dying, tmp_path, 9)),
        ("fails", works.failing),
        ("works", partial(works.squared, 7)),
        advanced=lambda *said: heard.append(said),
    )
    assert found["works"].answer == 49
    assert heard == [("works", 1, 1)]
    assert found["fails"].error == "OSError: no such luck"
    assert "SIGKILL (out of memory?); the same command goes on with it" in str(found["dies"].error)


def test_answers_come_as_they_are_there(tmp_path: Path) -> None:
    sign, order = tmp_path / "sign", []
    todo = [("slow", partial(works.waiting, sign)), ("quick", partial(works.squared, 2))]
    for over in each(partial(executor_for, None, 2), todo):
        order.append(over.name)
        sign.touch()
    assert order == ["quick", "slow"]


def test_nothing_is_begun_when_no_more_is_wanted() -> None:
    began: list[str] = []
    todo = [(str(number), partial(works.squared, number)) for number in range(4)]
    found = told(*todo, jobs=1, began=began.append, more=lambda: len(began) < 2)
    assert list(found) == began == ["0", "1"]


def test_no_executor_is_made_for_nothing() -> None:
    assert list(each(lambda: pytest.fail("nobody has anything to do"), [])) == []


@pytest.mark.parametrize("cluster", ["slurm", "ray:", "", "rays", "slurm:host"])
def test_other_clusters_are_refused(cluster: str) -> None:
    with pytest.raises(SettingError, match="say ray, ray:ADDRESS"):
        executor_for(cluster)


def test_without_ray_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SettingError, match=r"pip install 'reticent\[ray\]'"):
        executor_for("ray")


def test_a_machine_that_does_not_see_the_folder_says_so(tmp_path: Path) -> None:
    job = Job(name="one", label="one", recipe=Recipe(data="digits", epsilon=3.0, epochs=1, seed=0))
    with pytest.raises(SettingError, match="on a disk that all machines"):
        _performed(job, tmp_path / "elsewhere", lambda _done, _total: None)
    assert not (tmp_path / "elsewhere").exists()
