"""One conformance suite for every method: what each must satisfy, whatever paper it is from."""

from __future__ import annotations

import copy
import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent import inside, outside
from reticent.accounting import Budget
from reticent.accounting.matrices.banded import optimised
from reticent.errors import ModelError, PrivacyWarning
from reticent.inside import Buffers, Draw, Query, Sealed, Vault
from reticent.inside.drawn import Drawn
from reticent.methods import Method

pytestmark = pytest.mark.filterwarnings("ignore::reticent.errors.PrivacyWarning")

Pair = tuple[Tensor, Tensor]
SMALL_TESTS = {"validation_batch_size": 10}
OPTIONS: dict[str, dict[str, Any]] = {
    "dpsur": SMALL_TESTS,
    "dpsur smooth": SMALL_TESTS | {"test": "smooth"},
    "dpsur hidden": SMALL_TESTS | {"hidden_attempts": True, "cap": 200},
    "dpsur late": SMALL_TESTS | {"after": 3},
    "sa_dpsgd": SMALL_TESTS | {"validation_noise": 4.0},
    "sa_dpsgd hidden": {"max_rejections": 3, "hidden_attempts": True},
    "pd_sgd": {"noise_std": 0.1, "gamma": 4.0, "needed": 2},
    "band_mf": {"bands": 4},
    "dpagd": {"longest": 1.0, "max_grad_norm": 0.5},
}
NAMES = sorted({*rt.methods.names(), *OPTIONS})
NO_GUARANTEE = {"pd_sgd"}
ADAPTIVE = {"dpagd", "dpis"}
PROVED = [name for name in NAMES if name not in NO_GUARANTEE]
PLANNED = [name for name in PROVED if name not in ADAPTIVE]


def method(name: str) -> Method:
    options = dict(OPTIONS.get(name, {}))
    if name == "sa_dpsgd hidden":
        public = torch.Generator().manual_seed(9)
        y = torch.arange(40) % 2
        options |= {"holdout": (torch.randn(40, 4, generator=public) + 3.0 * y[:, None], y), "holdout_is_public": True}
    return rt.methods.get(name.split()[0], **options)


SOLUTIONS = ("class_means", "least_squares")
"""Find one layer, and are put in place by one kind of step alone."""


def net(name: str = "") -> nn.Module:
    torch.manual_seed(0)
    if name in SOLUTIONS:
        return nn.Linear(4, 2)
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))


def make(name: str, examples: Pair, **settings: Any) -> rt.Run:
    model = settings.pop("model", None) or net(name)
    solution = name in SOLUTIONS
    optimizer = (torch.optim.SGD if solution else torch.optim.Adam)(model.parameters(), lr=1.0 if solution else 0.05)
    plan: dict[str, Any] = {"method": method(name), "batch_size": 40, "rounds": 8, "delta": 1e-5, "seed": 3}
    if name in ADAPTIVE:
        plan["budget"] = Budget(4.0, 1e-5)
    elif "budget" not in settings and plan["method"].noise_multiplier is None:
        plan["method"] = replace(plan["method"], noise_multiplier=2.0)  # calibrating takes longer than training
    plan |= settings
    scheduler = None if solution else torch.optim.lr_scheduler.StepLR(optimizer, 3)
    return rt.Run(model, optimizer, examples, scheduler=scheduler, **plan)


def state(run: rt.Run) -> list[Any]:
    turn = None if run.scheduler is None else run.scheduler.state_dict()
    return copy.deepcopy([run.model.state_dict(), run.optimizer.state_dict(), turn, run._standing.remembered])


def equal(left: Any, right: Any) -> bool:
    if isinstance(left, Tensor):
        return torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


@pytest.mark.parametrize("name", PLANNED)
def test_plan_equals_ledger(name: str, blobs: Pair) -> None:
    run = make(name, blobs)
    list(run)
    assert run.ledger.tally() == run.plan.tally()


COSTLY = [name for name in PROVED if "hidden" in name]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in COSTLY else name for name in PROVED]
)
def test_keeps_within_its_budget(name: str, blobs: Pair) -> None:
    run = make(name, blobs, budget=Budget(4.0, 1e-5))
    list(run)
    guarantee = run.guarantee()
    assert guarantee.status == "proved"
    assert guarantee.epsilon <= 4.0
    # What was written must not cost more than what is promised, priced as if it had been the plan.
    assert rt.accounting.epsilon(run.ledger.tally(), 1e-5, accountant="rdp") <= max(guarantee.rdp or 0.0, 4.0) + 1e-9


@pytest.mark.parametrize("name", sorted(NO_GUARANTEE))
def test_without_proof_no_epsilon(name: str, blobs: Pair) -> None:
    with pytest.warns(PrivacyWarning, match="no epsilon to keep"):
        run = make(name, blobs, budget=Budget(4.0, 1e-5))
    assert run.guarantee().status == "none"
    assert "no differential privacy" in str(run.guarantee())


@pytest.mark.parametrize("name", NAMES)
def test_a_rejected_round_leaves_every_bit_as_it_was(name: str, blobs: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "dpagd":
        pytest.skip("its gate never rejects: it improves the gradient until a step helps")
    run = make(name, blobs)
    run.step()
    before = state(run)
    gate = type(run.plan.method.gate)
    judged = gate.settle

    def refuse(self: Any, proposal: outside.Proposal) -> outside.Outcome:
        judged(self, proposal)
        return outside.Outcome(kept=False)

    monkeypatch.setattr(gate, "settle", refuse)
    step = run.step()
    assert not step.kept
    assert equal(state(run), before)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_result_other_seed_another(name: str, blobs: Pair) -> None:
    ends = []
    for seed in (3, 3, 4):
        run = make(name, blobs, seed=seed)
        list(run)
        ends.append(state(run))
    assert equal(ends[0], ends[1])
    assert not equal(ends[0], ends[2])


@pytest.mark.parametrize("name", [name for name in PLANNED if "hidden" not in name])
def test_an_empty_draw_is_noised_stepped_and_charged(name: str, blobs: Pair) -> None:
    run = make(name, blobs, batch_size=1e-9, rounds=3)
    before = state(run)
    steps = list(run)
    assert run.ledger.tally() == run.plan.tally()
    if any(step.kept for step in steps):
        assert not equal(state(run)[0], before[0])


@pytest.mark.parametrize("name", NAMES)
def test_resume_in_the_middle_is_exact(name: str, blobs: Pair, tmp_path: Path) -> None:
    whole = make(name, blobs)
    list(whole)
    half = make(name, blobs, folder=tmp_path)
    for _ in range(3):
        half.step()
    half.save()
    half.step()
    again = make(name, blobs, folder=tmp_path, resume=True)
    assert again.number == 3
    list(again)
    assert equal(state(again), state(whole))
    assert [entry.event for entry in again.ledger] == [entry.event for entry in whole.ledger]
    assert again.guarantee() == whole.guarantee()


@pytest.mark.parametrize("name", PLANNED)
def test_epsilon_grows_with_rounds_and_falls_with_noise(name: str, blobs: Pair) -> None:
    def epsilon(noise: float, rounds: int) -> float:
        quiet = replace(method(name), noise_multiplier=noise)
        return rt.methods.plan(
            quiet, size=200, batch_size=40, rounds=rounds, delta=1e-5, adjacency="zero-out"
        ).price.epsilon

    assert epsilon(2.0, 4) < epsilon(2.0, 8)
    assert epsilon(3.0, 8) < epsilon(2.0, 8)


@pytest.mark.parametrize("name", NAMES)
def test_prints_itself_and_reads_back(name: str) -> None:
    made = method(name)
    if "PublicHoldout" in repr(made):
        assert "40 examples" in repr(made)
        return
    words = vars(inside) | vars(outside) | vars(importlib.import_module("reticent.methods.papers.pd_sgd"))
    assert eval(repr(made), words) == made


@pytest.mark.parametrize("name", NAMES)
def test_batch_norm_is_refused_by_name(name: str, blobs: Pair) -> None:
    bad = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    with pytest.raises(ModelError, match="BatchNorm1d"):
        make(name, blobs, model=bad)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float, float]]:
    """Every query asked in a run, with how far its answer moves when one drawn example is drawn out."""
    moves: list[tuple[str, float, float]] = []
    ask = Vault.ask

    def asking(self: Vault, query: Query, draw: Draw) -> Sealed:
        place = (self._round, "ask", self._asks)
        sealed = ask(self, query, draw)
        for out in range(min(len(draw._index), 6)):
            fewer = replace(draw, _index=np.delete(draw._index, out))
            memory = {key: part.clone() for key, part in self.memory.items()}
            drawn = Drawn(fewer, self._randomness.stream(*place), memory, self._examples, self._device)
            change = (query.answer(drawn) - sealed._value).abs()
            distance = float(change.max() if type(query).__name__ == "StepScores" else change.norm())
            moves.append((type(query).__name__, distance, query.sensitivity))
        return sealed

    monkeypatch.setattr(Vault, "ask", asking)
    return moves


@pytest.mark.parametrize("name", [name for name in PROVED if name != "dpis"])
def test_one_example_moves_no_answer_further_than_its_sensitivity(
    name: str, blobs: Pair, watched: list[tuple[str, float, float]]
) -> None:
    x, y = blobs[0].clone(), blobs[1].clone()
    x[::5] *= 50  # outliers, so that bounds bind
    list(make(name, (x, y), rounds=4))
    assert watched
    for query, distance, sensitivity in watched:
        assert distance <= sensitivity * (1 + 1e-4) + 1e-6, query
    sums = ("GradientSum", "CountedSumQuery", "MixedQuery", "StatisticsQuery", "ClassSumsQuery")
    gradients = [distance / sensitivity for query, distance, sensitivity in watched if query in sums]
    later = {"band_mf": optimised(4, 4)[0], "blt": 1 / Buffers(rounds=4, parts=5).sensitivity}
    once = later.get(name, 1.0)  # the rest of it is in the rounds to come
    assert max(gradients) > 0.9 * once, "no example came near the bound: the probe is too weak to see a missing clip"
