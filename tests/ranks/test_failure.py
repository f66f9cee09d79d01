"""A rank that dies, fails or falls silent: the others say so, nothing is lost, and nothing is charged twice."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import runs
import torch
from test_same_run import apart
from torch import Tensor, nn
from world import Gone, answers, on_ranks

import reticent as rt
from reticent.accounting.journal import Journal
from reticent.checkpoint import Folder
from reticent.errors import ModelError, RankError, ResumeError, SettingError
from reticent.inside import comparing
from reticent.inside.several import Several

pytestmark = pytest.mark.filterwarnings("ignore::reticent.errors.PrivacyWarning", "ignore::reticent.errors.FileWarning")

ROUNDS = 6
MOMENTS = 90
"""About so many times a rank of the short run below talks, or writes."""


def make(folder: Path, **said: Any) -> rt.Run:
    return runs.make("dpsur", dtype=torch.float64, rounds=ROUNDS, folder=folder, checkpoint_seconds=0.0, **said)


def to_the_end(folder: Path, **said: Any) -> Callable[[int], Any]:
    def job(_rank: int) -> Any:
        run = make(folder, resume=True, **said)
        list(run)
        return runs.weights(run), runs.released(run), run.kept

    return job


def dies_at(moment: int) -> None:
    """Kill this process the so manieth time it talks to the others, or is about to write or has written something."""
    left = [moment]

    def deadly(right: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            for act in (lambda: None, lambda: right(*given, **named)):
                left[0] -= 1
                if left[0] <= 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                answer = act()
            return answer

        return call

    for owner, name in ((Several, "_talk"), (Journal, "append"), (Folder, "write")):
        setattr(owner, name, deadly(getattr(owner, name)))  # in a forked process


def killed(folder: Path, rank: int, moment: int) -> list[Any]:
    def job(here: int) -> Any:
        if here == rank:
            dies_at(moment)
        return to_the_end(folder)(here)

    return on_ranks(2, job)


def check(folder: Path, rank: int, moment: int, world: int) -> None:
    """Killed there, and resumed on so many ranks, a run ends as one that nobody has killed."""
    right = answers(2, to_the_end(folder / "whole"))
    found = killed(folder / "killed", rank, moment)
    assert isinstance(found[rank], Gone)
    other = found[1 - rank]
    assert isinstance(other, RankError) or not isinstance(other, Exception), other
    if isinstance(other, RankError):
        assert "start all ranks again, with resume=True" in str(other)
        assert "timed out" not in str(other).lower()  # it was noticed at once, not after the longest wait
    for weights, releases, kept in answers(world, to_the_end(folder / "killed")):
        assert (releases, kept) == right[0][1:]
        assert torch.equal(weights, right[0][0]) if world == 2 else apart(weights, right[0][0]) < 1e-10
    if world == 2:
        seals = [
            [entry.seal for entry in rt.accounting.Ledger(folder / name / "ledger.jsonl")]
            for name in ("whole", "killed")
        ]
        assert seals[0] == seals[1]  # every sum is the same to the last digit


@pytest.mark.parametrize(("rank", "moment", "world"), [(1, 47, 1), (0, 62, 2)])
def test_a_killed_rank_stops_the_others_and_the_run_goes_on(rank: int, moment: int, world: int, tmp_path: Path) -> None:
    check(tmp_path, rank, moment, world)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_a_rank_may_be_killed_at_any_moment(number: int, tmp_path: Path) -> None:
    rng = random.Random(number)
    check(tmp_path, rng.randrange(2), rng.randrange(1, MOMENTS), 1 + number % 2)


@pytest.mark.parametrize("world", [1, 3])
def test_rounds_that_were_released_are_repeated_as_they_were_divided(world: int, tmp_path: Path) -> None:
    """No checkpoint since the first round: all are in the ledger, and must come out the same on one rank."""

    def job(rank: int) -> Any:
        run = make(tmp_path)
        run._folder = run._folder if rank else Forgetful(run._folder)
        for _ in range(4):
            run.step()
        return runs.weights(run)

    before = answers(2, job)[0]

    def again(_rank: int) -> Any:
        run = make(tmp_path, resume=True)
        assert run.number == 0
        for _ in range(4):
            run.step()
        here = runs.weights(run)
        list(run)
        return here, len(run.ledger)

    for weights, count in answers(world, again):
        assert torch.equal(weights, before)
        assert count == ROUNDS


class Forgetful:
    """A folder in which no checkpoint is written any more, as if there had been no time for it."""

    def __init__(self, folder: Any):
        self._folder = folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._folder, name)

    def write(self, tree: Any, *, behind: bool = False) -> None:
        """Nothing."""


def test_a_failure_of_one_rank_is_told_to_all(tmp_path: Path) -> None:
    class Refusing(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            if refused and x.shape[0] > 1:
                raise ModelError("I will not")
            return super().forward(x)

    refused: list[int] = []

    def job(rank: int) -> Any:
        run = runs.make(rounds=4, model=Refusing(4, 2), folder=tmp_path)
        run.step()
        refused.extend([rank] * rank)
        with pytest.raises((ModelError, RankError)) as caught:
            run.step()
        return str(caught.value), run.number

    (first, at), (second, also) = answers(2, job)
    assert at == also == 1
    assert second == "I will not"
    assert first == "rank 1 stopped: I will not (rank 0 stops with it)"


def test_what_the_first_rank_refuses_all_refuse(tmp_path: Path) -> None:
    def job(_rank: int) -> str:
        list(make(tmp_path))
        with pytest.raises((ResumeError, RankError)) as caught:
            make(tmp_path)
        return str(caught.value)

    mine, theirs = answers(2, job)
    assert mine.endswith("holds a run already: resume it (resume=True, --resume) or give another folder")
    assert theirs == f"rank 0 stopped: {mine} (rank 1 stops with it)"


def test_silence_is_a_timeout_with_a_message() -> None:
    def job(rank: int) -> Any:
        run = runs.make(rounds=4)
        run.step()
        if rank:
            time.sleep(8)  # alive, and silent for longer than the others wait
        run.step()

    found = on_ranks(2, job, timeout=2)
    assert isinstance(found[0], RankError)
    assert "nothing was heard for 2 seconds" in str(found[0])


def many(swapped: int = 0) -> tuple[Tensor, ...]:
    """More examples than are fingerprinted, of which two may stand in each other's place."""
    x, y = torch.randn(600, 4, generator=torch.Generator().manual_seed(1)), torch.arange(600) % 2
    order = torch.arange(600)
    order[[100, 101]] = order[[101, 100]] if swapped else order[[100, 101]]
    return x[order], y[order]


REFUSED: list[tuple[Callable[[int], dict[str, Any]], str]] = [
    (lambda rank: {"batch_size": 12 + rank}, "must make the same call"),
    (lambda rank: {"seed": 3 + rank}, "must make the same call"),
    (lambda rank: {"size": 60 + rank, "delta": 1e-3}, "must make the same call"),
    (lambda rank: {"method": rt.methods.dpsgd(noise_multiplier=1.0 + rank)}, "must make the same call"),
    (lambda rank: {"model": runs.network(torch.float64 if rank else torch.float32)}, "type of the weights"),
    (lambda rank: {"model": nn.Sequential(nn.Linear(4, 2), nn.ReLU() if rank else nn.Tanh())}, "answers otherwise"),
    (lambda rank: {"folder": "elsewhere" if rank else None}, "rank 1 was given 'a folder' as folder, and rank 0 None"),
    (lambda rank: {"examples": tuple(part.flip(0) if rank else part for part in runs.blobs())}, "count twice"),
    (lambda rank: {"examples": many(swapped=rank)}, "count twice"),
    (lambda rank: {"groups": torch.arange(60) // 2 if rank else torch.arange(60) % 30}, "count twice"),
    (lambda rank: {"examples": tuple(part[: 60 - rank] for part in runs.blobs())}, "the ranks hold 60, 59 examples"),
    (lambda rank: {"shard": range(0, 60)}, "must follow one another"),
    (lambda rank: {"shard": None if rank else range(0, 60)}, "must follow one another"),
    (lambda rank: {"shard": range(60 * rank, 60 * rank + 60)}, "many rows are in the shards of two ranks"),
    (
        lambda rank: {
            "examples": [part[260 * rank : 260 * rank + 300] for part in many()],
            "shard": range(300 * rank, 300 * rank + 300),
        },
        "many rows are in the shards of two ranks",
    ),
    (lambda rank: {"groups": torch.arange(60) // 2, "shard": range(60 * rank, 60 * rank + 60)}, "of a person on two"),
    (lambda rank: {"private_diagnostics": True}, "recorded in one process"),
    (lambda rank: {"method": rt.methods.pd_sgd(), "shard": range(60 * rank, 60 * rank + 60)}, "compares whole batches"),
]
"""What each of two ranks says, and why it is refused."""


def test_what_ranks_cannot_do_together_is_refused_before_the_start(tmp_path: Path) -> None:
    def job(rank: int) -> list[str]:
        os.chdir(tmp_path)
        return [refusal(lambda said=said: runs.make(rounds=2, **said(rank))) for said, _ in REFUSED]

    for said in answers(2, job):
        for found, (_, says) in zip(said, REFUSED, strict=True):
            assert says in found
    assert not list(tmp_path.iterdir())


def refusal(act: Callable[[], object]) -> str:
    """Why something is refused."""
    try:
        act()
    except (SettingError, RankError) as error:
        return str(error)
    return "it is not"


def test_people_with_the_same_values_are_not_taken_for_one() -> None:
    """Rows of few values are in all shards: nobody is refused for that."""
    x, y = torch.arange(60)[:, None] % 4 * torch.ones(4), torch.arange(60) % 2

    def job(rank: int) -> str:
        mine = slice(30 * rank, 30 * rank + 30)
        return refusal(lambda: runs.make(rounds=2, examples=(x[mine], y[mine]), shard=range(60)[mine]))

    assert answers(2, job) == ["it is not"] * 2


def test_another_version_on_a_rank_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def job(rank: int) -> str:
        monkeypatch.setattr("reticent.usable.version", lambda _name: str(rank))
        return refusal(lambda: runs.make(rounds=2))

    assert all("version of torch, numpy, randomgen or reticent differs" in said for said in answers(2, job))


@pytest.mark.parametrize("what", ["weights", "step"])
def test_ranks_that_come_apart_release_nothing_more(what: str) -> None:
    def job(rank: int) -> tuple[str, int]:
        run = runs.make(rounds=4)
        run.step()
        if rank and what == "weights":
            run._task.flat.vector[-1] += 1e-3
        if not rank and what == "step":
            run.optimizer.param_groups[0]["lr"] *= 0.5  # as somebody would who is told of progress on one rank
            run.step()
        elif what == "step":
            run.step()
        return refusal(run.step), len(run.ledger)

    done = 1 if what == "weights" else 2
    for says, released in answers(2, job):
        assert "the ranks have come apart" in says
        assert released == done


def test_what_cannot_be_compared_is_said_of_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(comparing, "MOST_ROWS", 10)
    x, y = runs.blobs()

    def job(rank: int) -> list[tuple[str, ...]]:
        mine = slice(30 * rank, 30 * rank + 30)
        whole = runs.make(rounds=2)
        parts = runs.make(rounds=2, examples=(x[mine], y[mine]), shard=range(60)[mine], folder=tmp_path)
        return [run.guarantee().assumptions for run in (whole, parts)]

    for whole, parts in answers(2, job):
        assert comparing.THE_SAME in whole
        assert comparing.APART in parts
        assert comparing.THE_SAME not in parts
    assert comparing.APART in runs.make(rounds=2, folder=tmp_path, resume=True).guarantee().assumptions


@pytest.mark.parametrize(
    ("set_there", "says"),
    [
        ({"RANK": "0", "WORLD_SIZE": "2"}, "torchrun did not start it"),
        ({"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "left"}, "did not meet"),
    ],
)
def test_what_torchrun_sets_without_torchrun_is_refused(
    set_there: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in set_there.items():
        monkeypatch.setenv(name, value)
    assert says in refusal(lambda: runs.make(rounds=2))
