"""The same runs on a cluster of Ray as in processes of this machine, also when a worker is killed.

A cluster of two workers is started for these tests; `make cluster` runs them, and so does .ci/run.
"""

from __future__ import annotations

import gc
import json
import os
import re
import secrets
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.executors import works
from torch import nn

import reticent as rt
from reticent.attacks.shadows import train_shadows
from reticent.errors import ReticentError, SettingError
from reticent.executors import Ended, each, executor_for
from reticent.experiments.compare import Comparison, compare
from reticent.experiments.job import Job
from reticent.experiments.recipe import Recipe
from reticent.experiments.sweep import sweep
from reticent.inside import Randomness

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray warns of much that is its own


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cluster of two workers, with a token of its own; nothing is written to the home folder."""
    pytest.importorskip("ray", reason="needs the extra ray")
    token = tmp_path_factory.mktemp("token") / "token"
    token.write_text(secrets.token_hex(32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")  # workers that give way to everybody get nowhere on a busy machine
        import ray

        start(ray)
        yield
        ray.shutdown()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray lets go of its processes before they are over
            ray._private.worker._global_node = None
            gc.collect()


def start(ray: Any, attempts: int = 10) -> None:
    """Two workers; Ray gives up on itself after half a minute, which on a busy machine says nothing."""
    for left in reversed(range(attempts)):
        try:
            ray.init(
                "local",
                num_cpus=2,
                include_dashboard=False,
                log_to_driver=False,
                object_store_memory=10**8,
                _node_ip_address="127.0.0.1",
            )
        except Exception:
            ray.shutdown()
            if not left:
                raise
        else:
            return


def on_ray(*todo: tuple[str, Any]) -> dict[str, Ended]:
    return {over.name: over for over in each(partial(executor_for, "ray"), todo)}


def essence(out: Path) -> dict[str, Any]:
    """What must not depend on where a run was done."""
    records = map(json.loads, (out / "results.jsonl").read_text().splitlines())
    kept = ("status", "accuracy", "classes", "epsilon", "epsilon_by_round", "ledger", "rounds", "kept", "error")
    return {record["run"]: {name: record.get(name) for name in kept} for record in records}


def test_a_comparison_is_the_same_on_the_cluster(tmp_path: Path, seen: Any) -> None:
    plan = Comparison(
        settings={"data": "digits", "epochs": 1.0},
        variants={"auto_s": {}, "hopeless": {"method": "dpsgd", "lr": 1e30, "max_grad_norm": -1.0}},
        epsilons=(3.0,),
        seeds=(0,),
    )
    here = compare(plan, tmp_path / "here", processes=2, watcher=seen)
    there = compare(plan, tmp_path / "there", processes=None, cluster="ray", watcher=seen)
    assert essence(there.out) == essence(here.out)
    assert set(there.failed) == {"hopeless-eps3-seed0"}, "one that fails is told, and the rest goes on"
    assert sorted(result.run for result in there.runs) == sorted(result.run for result in here.runs)


def test_a_run_whose_worker_is_killed_ends_as_if_nothing_had_happened(tmp_path: Path, seen: Any) -> None:
    jobs = [Job(name="long", label="dpsgd", recipe=Recipe(data="digits", epochs=60.0, epsilon=3.0, seed=0))]
    killed: list[int] = []

    def kill() -> None:
        folder = tmp_path / "killed" / "runs" / "long"
        while not (folder / "rounds.jsonl").exists() or (folder / "rounds.jsonl").read_text().count("\n") < 5:
            time.sleep(0.005)
        inode = (folder / ".lock").stat().st_ino
        held = (line.split() for line in Path("/proc/locks").read_text().splitlines() if re.search(f":{inode} ", line))
        killed.append(int(next(held)[4]))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    [result] = sweep(jobs, tmp_path / "killed", processes=2, cluster="ray", watcher=seen)
    killer.join()
    assert killed
    assert (result.status, result.effort.resumed) == ("done", True)
    sweep(jobs, tmp_path / "whole", processes=1, watcher=seen)
    assert essence(tmp_path / "killed") == essence(tmp_path / "whole")


def test_one_that_dies_again_and_again_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "once").mkdir()
    (tmp_path / "often").mkdir()
    found = on_ray(
        ("once", partial(works.dying, tmp_path / "once", 1)),
        ("often", partial(works.dying, tmp_path / "often", 99)),
        ("fails", works.failing),
        ("works", partial(works.squared, 7)),
    )
    assert (found["once"].answer, found["works"].answer) == (1, 49)
    assert found["fails"].error == "OSError: no such luck"
    assert "lost on the cluster 4 times" in str(found["often"].error)


def test_answers_come_as_they_are_there(tmp_path: Path) -> None:
    sign, order = tmp_path / "sign", []
    todo = [("slow", partial(works.waiting, sign)), ("quick", partial(works.squared, 2))]
    for over in each(partial(executor_for, "ray"), todo):
        order.append(over.name)
        sign.touch()
    assert order == ["quick", "slow"]


def test_work_is_done_as_if_it_were_done_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETICENT_SAYS", "hello")
    monkeypatch.chdir(tmp_path)
    assert on_ray(("here", partial(works.environment, "RETICENT_SAYS")))["here"].answer == ("hello", str(tmp_path))


def test_a_key_is_never_sent() -> None:
    with pytest.raises(SettingError, match="cannot be copied or pickled"):
        on_ray(("key", partial(works.squared, Randomness.fresh())))


def test_a_search_is_the_same_on_the_cluster() -> None:
    x = torch.randn(300, 4, generator=torch.Generator().manual_seed(0))
    y = (x.sum(1) > 0).long()
    settings: dict[str, Any] = {"epsilon": 4.0, "epochs": 1, "batch_size": 100, "seed": 6, "trials": 3}
    found = [
        rt.tune(lambda: nn.Linear(4, 2), (x[:200], y[:200]), judges=(x[200:], y[200:]), cluster=cluster, **settings)
        for cluster in (None, "ray")
    ]
    assert found[0].score == found[1].score
    one, two = (found.trained.model.state_dict() for found in found)
    assert all(torch.equal(one[name], two[name]) for name in one)


def shadow(number: int) -> np.ndarray:
    if number == 2:
        raise ValueError("a shadow that cannot be")
    return np.random.default_rng(number).random((2, 3))


def test_shadows_are_the_same_and_what_was_trained_is_kept(tmp_path: Path) -> None:
    found = train_shadows(shadow, 2, cluster="ray")
    assert np.array_equal(found, train_shadows(shadow, 2))
    with pytest.raises(ReticentError, match="shadow model 2: ValueError: a shadow that cannot be"):
        train_shadows(shadow, 4, cluster="ray", folder=tmp_path)
    assert len(list(tmp_path.glob("shadow-*.safetensors"))) == 3
