"""Adjacency: what is printed is what holds, for runs on the data as they are and without one example."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

import reticent as rt
from reticent.accounting import Budget, Guarantee, Ledger, Planned
from reticent.accounting.events import Gaussian
from reticent.audits.stored import check_stored
from reticent.data import load
from reticent.data.features.statistics import release_mean
from reticent.errors import ResumeError, SettingError, UnknownName
from reticent.experiments.job import Job, perform
from reticent.experiments.recipe import Recipe, check
from reticent.experiments.training import prepare, train
from reticent.inside import ByNorm, Everyone, Poisson, Randomness, Vault, as_store
from reticent.methods import dpagd, dpis, dpsgd, dpsur, plan, sa_dpsgd
from reticent.run import Run

BATCH, NOISE, ROUNDS, DELTA = 20, 20.0, 100, 1e-5


def made(examples: int, method: rt.methods.Method | None = None, **settings: object) -> Run:
    """A run on so many examples."""
    net = nn.Linear(2, 2)
    pair = torch.randn(examples, 2), torch.zeros(examples, dtype=torch.long)
    chosen = {"batch_size": BATCH, "rounds": ROUNDS, "delta": DELTA, "seed": 0} | settings
    return Run(
        net, torch.optim.SGD(net.parameters(), lr=0.1), pair, method=method or dpsgd(noise_multiplier=NOISE), **chosen
    )


# -- exact epsilon of two neighbouring runs ------------------------------------------------------------------------


def answers(run: Run, others: int, target: bool) -> np.ndarray:
    """The law of one noisy sum, on a grid, by the run's own rate: the target's gradient is 1, all others' are -1."""
    rate = run.plan.settings.rate
    values, chances = -np.arange(others + 1.0), stats.binom.pmf(np.arange(others + 1), others, rate)
    z = np.arange(-others - 8 * NOISE, 8 * NOISE, 0.25)
    absent = chances @ stats.norm.pdf(z - values[:, None], 0, NOISE)
    present = chances @ stats.norm.pdf(z - values[:, None] - 1, 0, NOISE)
    return (1 - rate) * absent + rate * present if target else absent


def exact_epsilon(with_target: np.ndarray, without: np.ndarray, rounds: int) -> float:
    """Epsilon of so many rounds, from below: losses are rounded down, then convolved."""
    step, half = 1e-3, 2**16
    mass, loss = with_target / with_target.sum(), np.log(with_target / with_target.sum() / (without / without.sum()))
    one = np.zeros(2 * half)
    np.add.at(one, np.floor(loss / step).astype(int) % len(one), mass)
    many = np.fft.irfft(np.fft.rfft(one) ** rounds, len(one))
    losses = step * np.fft.ifftshift(np.arange(-half, half))
    low, high = 0.0, 50.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        left = np.where(losses > middle, many * -np.expm1(np.minimum(middle - losses, 0)), 0).sum()
        low, high = (middle, high) if left > DELTA else (low, middle)
    return low


def test_without_a_declared_size_leaving_one_out_is_not_what_is_promised() -> None:
    """One example less raises everybody's rate: that costs more than the epsilon printed, which is for zero-out."""
    whole, fewer = made(40), made(39)
    assert whole.plan.settings.rate < fewer.plan.settings.rate
    found = exact_epsilon(answers(whole, 39, target=True), answers(fewer, 39, target=False), ROUNDS)
    printed = whole.guarantee()
    assert found > 1.5 * printed.epsilon
    assert printed.adjacency == "zero-out"
    assert "the number of examples being public" in str(printed)


def test_with_a_declared_size_leaving_one_out_costs_what_is_promised() -> None:
    whole, fewer = made(40, size=40), made(39, size=40)
    found = exact_epsilon(answers(whole, 39, target=True), answers(fewer, 39, target=False), ROUNDS)
    printed = whole.guarantee()
    assert 0.8 * printed.epsilon < found <= printed.epsilon
    assert printed.adjacency == "add-or-remove"
    assert "add or remove one example" in str(printed)
    assert printed == fewer.guarantee()


@pytest.mark.parametrize("settings", [{"epsilon": 2.0}, {"noise_multiplier": 3.0}, {"epsilon": 2.0, "method": "dpis"}])
def test_nothing_public_follows_from_the_length_of_the_data(settings: dict[str, object]) -> None:
    """Batch, rounds and delta follow from the number of examples where they are not said: from the declared one."""

    def told(examples: int) -> tuple[object, ...]:
        pair = torch.randn(examples, 2), torch.zeros(examples, dtype=torch.long)
        plans = []
        done = rt.fit(
            nn.Linear(2, 2),
            pair,
            size=120_000,
            epochs=0.0005,
            seed=0,
            progress=lambda run, _: plans.append(run.plan),
            **settings,
        )
        return done.rounds, done.guarantee, repr(plans[0])

    assert told(300) == told(299) == told(301)


# -- draws ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("examples", [30, 50])
def test_a_draw_has_the_declared_rate_whatever_there_is(examples: int) -> None:
    run, rounds = made(examples, size=40), 4000
    rate = run.plan.settings.rate
    drawn = np.zeros((rounds, examples))
    for number, index in enumerate(run.watch().draws(Poisson(), run.plan.settings, rounds)):
        drawn[number, index] += 1
    assert rate == BATCH / 40
    assert drawn.max() == 1
    each = ((drawn.sum(0) - rounds * rate) ** 2 / (rounds * rate * (1 - rate))).sum()
    assert stats.chi2.sf(each, examples) > 1e-3
    expected = rounds * stats.binom.pmf(np.arange(examples + 1), examples, rate)
    common = expected >= 5
    seen = np.bincount(drawn.sum(1).astype(int), minlength=examples + 1)
    assert stats.chisquare(seen[common], expected[common] * seen[common].sum() / expected[common].sum()).pvalue > 1e-3


def test_everyone_is_everyone_there_is() -> None:
    run = made(30, size=40)
    (index,) = run.watch().draws(Everyone(), run.plan.settings, 1)
    assert index.tolist() == list(range(30))


@pytest.mark.parametrize("examples", [900, 1100])
@pytest.mark.parametrize("norms", ["carry", "refresh"])
def test_norms_are_remembered_of_every_example_there_is(examples: int, norms: str) -> None:
    budget = Budget(3.0, DELTA)
    run = made(examples, dpis(norms=norms), size=1000, batch_size=200, rounds=10, delta=None, budget=budget)
    for _ in run:
        pass
    assert {len(part) for part in run._vault.memory.values()} == {examples}
    assert isinstance(run.plan.method.sampler, ByNorm)
    assert run.plan.settings.size == 1000


@pytest.mark.parametrize("adjacency", [None, "replace"])
@pytest.mark.parametrize("method", [
    dpsgd(noise_multiplier=4.0),
    dpsur(noise_multiplier=4.0, validation_batch_size=20),
    dpsur(noise_multiplier=4.0, validation_batch_size=20, hidden_attempts=True),
    sa_dpsgd(noise_multiplier=4.0),
    dpis(),
    dpagd(),
], ids=lambda method: f"{method.name}-{method.gate.candidates}")  # fmt: skip
def test_every_method_runs_with_another_size_than_the_datas(method: rt.methods.Method, adjacency: str | None) -> None:
    batch = 500 if method.name == "dpagd" else 100
    budget = Budget(9.0, DELTA)
    run = made(450, method, size=500, adjacency=adjacency, batch_size=batch, rounds=3, delta=None, budget=budget)
    for _ in run:
        pass
    said = run.guarantee()
    assert said.adjacency == (adjacency or "add-or-remove")
    assert said.epsilon <= 9.0
    if not run.plan.adaptive:
        assert run.ledger.tally() == run.plan.tally()
        spent = rt.accounting.price(run.ledger.tally(), DELTA, adjacency=said.adjacency)
        assert spent.epsilon == pytest.approx(said.epsilon)


# -- what else is released or told -----------------------------------------------------------------------------------


def test_a_mean_is_divided_by_the_declared_size() -> None:
    vault = Vault(
        as_store((torch.ones(50, 3), torch.zeros(50))),
        randomness=Randomness.from_seed(0),
        ledger=Ledger(),
        allowance=Planned([Gaussian(1e-9)]),
    )
    mean = release_mean(vault, lambda x: x, limit=10.0, noise_multiplier=1e-9, size=100)
    assert torch.allclose(mean, torch.full((3,), 0.5, dtype=torch.float64), atol=1e-6)


def test_a_folder_does_not_tell_how_many_there_are(tmp_path: Path) -> None:
    """Digits has 1437 training examples; 1500 are declared, and nothing that is kept says otherwise."""
    recipe = Recipe(
        data="digits", size=1500, epsilon=3.0, epochs=1, statistics_noise=30.0, centre=30.0, model="linear", seed=0
    )
    record = perform(Job(name="declared", label="dpsgd", recipe=recipe), tmp_path, lambda _done, _total: None)
    assert record.status == "done", record.error
    assert record.examples == 1500
    assert record.guarantee is not None
    assert record.guarantee.adjacency == "add-or-remove"
    for name in ("result.json", "card.json", "record.json", "rounds.jsonl", "ledger.jsonl"):
        assert re.search(r"(?<![\w.])1437(?![\w.])", (tmp_path / name).read_text()) is None
    assert check_stored(tmp_path, record.guarantee).holds


def test_a_replaced_promise_holds_for_what_is_stored(tmp_path: Path) -> None:
    guarantee = train(Recipe(data="digits", adjacency="replace", epsilon=3.0, epochs=1, seed=0), tmp_path).guarantee
    assert guarantee.adjacency == "replace"
    assert 2.9 < guarantee.epsilon <= 3.0
    found = check_stored(tmp_path, guarantee)
    assert found.figures["ledger"] == pytest.approx(guarantee.epsilon)
    last = json.loads((tmp_path / "rounds.jsonl").read_text().splitlines()[-1])
    assert last["epsilon_if_planned"] == pytest.approx(guarantee.epsilon)


def test_a_recipe_plans_by_the_declared_size() -> None:
    dataset = load("digits")
    run = prepare(Recipe(data="digits", size=2000, epsilon=3.0, epochs=2, batch_size=100, seed=0).filled(), dataset)
    assert (run.plan.settings.size, run.plan.settings.rate, run.plan.rounds) == (2000, 0.05, 40)


# -- words and refusals ----------------------------------------------------------------------------------------------


def test_older_files_mean_zero_out() -> None:
    """Before there were names, the rate came from the data's length, whatever was printed."""
    older = Guarantee("proved", 1.0, DELTA).to_json() | {"adjacency": "add or remove one example"}
    assert Guarantee.from_json(older).adjacency == "zero-out"
    newer = Guarantee("proved", 1.0, DELTA, "add-or-remove").to_json()
    assert newer["adjacency"] == "add-or-remove"
    assert Guarantee.from_json(newer).adjacency == "add-or-remove"


def test_a_plan_says_what_its_size_is() -> None:
    numbers = {"size": 1000, "batch_size": 100, "rounds": 10, "delta": DELTA}
    known = [
        plan(dpsgd(noise_multiplier=2.0), **numbers, adjacency=adjacency).guarantee(seeded=False).assumptions[0]
        for adjacency in ("zero-out", "add-or-remove", "replace")
    ]
    assert known[0] == known[2] == "the number of examples is public"
    assert "declared" in known[1]


@pytest.mark.parametrize(("settings", "says"), [
    ({"adjacency": "add-or-remove"}, "give size"),
    ({"adjacency": "swap"}, "adjacency"),
    ({"size": 0}, "at least 1"),
    ({"size": 10}, "batch_size"),
])  # fmt: skip
def test_what_does_not_hold_is_refused(settings: dict[str, object], says: str) -> None:
    with pytest.raises((SettingError, UnknownName), match=says):
        made(40, **settings)


def test_who_is_set_aside_would_depend_on_how_many_there_are() -> None:
    with pytest.raises(SettingError, match="set aside"):
        check(Recipe(size=1000, holdout=100))


def test_a_run_is_not_resumed_as_another_promise(tmp_path: Path) -> None:
    made(40, folder=tmp_path)
    with pytest.raises(ResumeError, match="adjacency"):
        made(40, size=40, folder=tmp_path, resume=True)


def test_replacing_needs_more_noise() -> None:
    noises = [
        made(40, dpsgd(), adjacency=adjacency, budget=Budget(1.0, DELTA), delta=None).plan.settings.noise_multiplier
        for adjacency in (None, "replace")
    ]
    assert 1.5 * noises[0] < noises[1] < 3 * noises[0]
    assert math.isfinite(noises[1])


def test_a_declared_size_serves_any_store() -> None:
    class Rows(torch.utils.data.Dataset[tuple[Tensor, Tensor]]):
        def __len__(self) -> int:
            return 30

        def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
            return torch.full((2,), float(place)), torch.tensor(0)

    net = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    run = Run(net, optimizer, Rows(), method=dpsgd(noise_multiplier=2.0), batch_size=20, size=40, rounds=2, delta=DELTA)
    assert [step.number for step in run] == [1, 2]
