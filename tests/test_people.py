"""Privacy by person: who is drawn, bounded, counted and promised is a person with all rows, in every method."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent.accounting import Budget, Gaussian, Guarantee, Ledger, Planned
from reticent.data import Examples
from reticent.data.features.statistics import release_mean
from reticent.errors import DataError, PrivacyWarning, ResumeError, SettingError
from reticent.inside import Bound, Clip, Everyone, Loss, Normalise, Persons, Randomness, RoundSettings, Vault, by_person
from reticent.inside.drawn import Drawn
from reticent.inside.persons import loss_of
from reticent.inside.queries import GradientSum, loss_changes
from reticent.inside.rounding import slack
from reticent.inside.task import Flat, Task
from reticent.losses import cross_entropy
from reticent.methods import auto_s, dpagd, dpis, dpsgd, dpsur, noise_decay, sa_dpsgd
from reticent.methods.planning import default_delta
from reticent.results import read_guarantee
from reticent.results.fields import Fields
from reticent.run import Run

DELTA = 1e-5
Rows = tuple[Tensor, Tensor]


def visits(persons: int = 40, most: int = 9, seed: int = 0) -> tuple[Rows, np.ndarray]:
    """Rows of persons with one to `most` rows each, in no order."""
    rng = np.random.default_rng(seed)
    whose = rng.permutation(np.repeat(np.arange(persons), rng.integers(1, most + 1, persons)))
    x = torch.from_numpy(rng.normal(size=(len(whose), 4)).astype(np.float32))
    return (x, torch.from_numpy(rng.integers(0, 2, len(whose)))), whose


def net(dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(dtype)


def made(pair: Rows, whose: Any, method: rt.methods.Method | None = None, **options: Any) -> Run:
    model = options.pop("model", None) or net(pair[0].dtype)
    rest = {"batch_size": 10, "rounds": 3, "delta": DELTA, "seed": 0} | options
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return Run(model, optimizer, pair, method=method or dpsgd(noise_multiplier=1.0), groups=whose, **rest)


def sealed(pair: Rows, whose: Any, **options: Any) -> Tensor:
    """The sum of the first round with everybody in it, without noise."""
    persons = len(np.unique(whose))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        run = made(pair, whose, batch_size=persons, rounds=1, **options)
    probe = run.watch()
    run.step()
    return probe.openings[0].sealed


def summed(pair: tuple[Tensor, ...], whose: Any, bound: Bound, model: nn.Module, loss: Loss = cross_entropy) -> Tensor:
    """The same without a run: the query alone, everybody drawn, a bound of 0.7."""
    people = by_person(pair, whose)
    settings, rng = RoundSettings(len(people), len(people), 0.7, 1.0), np.random.default_rng(0)
    drawn = Drawn(Everyone().draw(settings, len(people), rng, {}), rng, {}, people)
    return GradientSum(Task(model, loss_of(people, loss), Flat(model)), bound, settings).answer(drawn)


def by_hand(model: nn.Module, pair: Rows, whose: np.ndarray, bound: float) -> Tensor:
    """A loop over persons: the mean gradient of all rows, clipped, added up."""
    total = torch.zeros(sum(p.numel() for p in model.parameters()), dtype=torch.float64)
    for person in np.unique(whose):
        mine = torch.from_numpy(np.flatnonzero(whose == person))
        loss = cross_entropy(model, (pair[0][mine], pair[1][mine])).mean()
        parts = torch.autograd.grad(loss, list(model.parameters()))
        gradient = torch.cat([part.flatten() for part in parts]).double()
        total += gradient * min(1.0, bound / float(gradient.norm()))
    return total


# -- the sum ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bound", "dtype"), [(0.05, torch.float32), (0.5, torch.float64), (100.0, torch.float64)])
def test_a_round_sums_what_a_loop_over_persons_does(bound: float, dtype: torch.dtype) -> None:
    (x, y), whose = visits()
    pair = (x.to(dtype), y)
    found = sealed(pair, whose, method=dpsgd(noise_multiplier=1.0, max_grad_norm=bound))
    expected = by_hand(net(dtype), pair, whose, bound)
    assert float((found.double() - expected).norm()) <= 1e-6 * max(1.0, float(expected.norm()))


def test_memory_changes_no_answer() -> None:
    pair, whose = visits()
    torch.testing.assert_close(sealed(pair, whose, max_physical_batch_size=7), sealed(pair, whose))


def hostile(kind: str, count: int) -> Tensor:
    """Rows of one person, made to move a sum as far as possible."""
    rng = torch.Generator().manual_seed(count)
    x = torch.randn(count, 4, generator=rng)
    if kind == "alike":
        x[:] = 1000.0
    if kind == "cancel":
        x[1::2] = -x[: len(x[1::2])] * (1 + 1e-6)
        x *= 1e4
    if kind == "spread":
        x *= torch.logspace(-6, 6, count)[:, None]
    if kind == "not a number":
        x[-1] = float("nan")
    return x


@pytest.mark.parametrize("bound", [Clip(), Normalise()], ids=["clip", "normalise"])
@pytest.mark.parametrize("count", [1, 2, 17, 200])
@pytest.mark.parametrize("kind", ["plain", "alike", "cancel", "spread", "not a number"])
def test_a_person_moves_the_sum_by_one_bound_however_many_rows(kind: str, count: int, bound: Bound) -> None:
    (x, y), whose = visits(12)
    labels = torch.zeros(count).long() if kind == "alike" else torch.arange(count) % 2
    more = (torch.cat([x, hostile(kind, count)]), torch.cat([y, labels]))
    model, most = net(), bound.sensitivity(RoundSettings(13, 13, 0.7, 1.0))
    far = summed(more, np.r_[whose, [99] * count], bound, model) - summed((x, y), whose, bound, model)
    assert float(far.double().norm()) <= most * slack(13, torch.float32, by_person=True)
    if kind == "alike":
        assert float(far.double().norm()) > 0.98 * most


def test_rows_in_any_order_are_the_same_persons() -> None:
    (x, y), whose = visits()
    order = np.random.default_rng(3).permutation(len(whose))
    mine, theirs = (summed((x[i], y[i]), whose[i], Clip(), net()) for i in (np.arange(len(whose)), order))
    torch.testing.assert_close(mine, theirs)


def test_padding_is_never_evaluated_as_nothing() -> None:
    """A model that has no answer for zeros is asked for none."""

    class Inverse(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(1 / x)

    (x, y), whose = visits()
    assert float(summed((x.abs() + 1, y), whose, Clip(), Inverse()).norm()) > 1.0


def test_a_person_with_a_row_that_fails_counts_for_nothing() -> None:
    (x, y), whose = visits()
    bad = y.clone()
    bad[np.flatnonzero(whose == 3)[0]] = 7  # no such class
    others = whose != 3
    found = sealed((x, bad), whose)
    torch.testing.assert_close(found, sealed((x[others], y[others]), whose[others]))


def first_output(model: nn.Module, batch: tuple[Tensor]) -> Tensor:
    """The gradient of a row is the row itself."""
    return model(batch[0])[:, 0]


def test_a_search_finds_no_rounding_beyond_half_of_what_is_covered() -> None:
    """Sums of persons whose running totals stay beside a power of two, one person taken out."""

    def total(x: Tensor) -> Tensor:
        model, whose = nn.Linear(x.shape[2], 1, bias=False), np.repeat(np.arange(len(x)), x.shape[1])
        return summed((x.flatten(0, 1),), whose, Clip(), model, first_output)

    rng, worst = torch.Generator().manual_seed(0), 0.0
    for _ in range(40):
        count, rows = 300, 8
        last = 2.0 ** (-23 + int(torch.randint(4, 11, (1,), generator=rng)))
        signs = torch.randint(0, 2, (count, 1), generator=rng).mul(2).sub(1)
        x = 0.05 * torch.randn(count, rows, 4, generator=rng)
        x[..., 0] = (0.5 + torch.randint(-3, 4, (count, rows), generator=rng) * 0.25 * last) * signs
        x[0], x[0, :, 0] = 0.0, 1.0
        worst = max(worst, float((total(x).double() - total(x[1:]).double()).norm()) / 0.7 - 1)
    assert 0 < worst <= (slack(300, torch.float32, by_person=True) - 1) / 2


# -- public numbers --------------------------------------------------------------------------------------------------


def test_numbers_follow_from_the_number_of_persons() -> None:
    """They are those of a run on as many rows."""
    (x, y), whose = visits(2000, most=3)
    plans: list[rt.methods.Plan] = []
    for rows, groups in ((len(y), whose), (2000, None)):
        done = rt.fit(
            net(),
            (x[:rows], y[:rows]),
            groups=groups,
            epsilon=3.0,
            epochs=0.1,
            progress=lambda run, _: plans.append(run.plan),
        )
        assert done.guarantee.delta == default_delta(2000)
        assert done.guarantee.assumptions[0] == f"the number of {done.guarantee.unit}s is public"
    assert (plans[0].settings.size, plans[0].unit) == (2000, "person")
    assert plans[0].settings == plans[-1].settings
    assert plans[0].rounds == plans[-1].rounds


def test_nothing_public_follows_from_how_many_there_are() -> None:
    def told(persons: int, most: int) -> tuple[object, ...]:
        pair, whose = visits(persons, most)
        plans: list[str] = []
        done = rt.fit(
            net(),
            pair,
            groups=whose,
            size=50_000,
            epsilon=2.0,
            epochs=0.002,
            seed=0,
            progress=lambda run, _: plans.append(repr(run.plan)),
        )
        return done.rounds, done.guarantee, plans[0]

    assert told(300, 4) == told(299, 20)


def test_a_longer_person_draws_no_more_noise() -> None:
    pair, whose = visits(20)
    (x, y), longer = (torch.cat([part] * 5) for part in pair), np.tile(whose, 5)
    few, many = made(pair, whose), made((x, y), longer)
    assert few.plan == many.plan


# -- methods ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [
    dpsgd(noise_multiplier=4.0),
    rt.methods.get("dpadam", noise_multiplier=4.0),
    rt.methods.get("dpsign_sgd", noise_multiplier=4.0),
    auto_s(noise_multiplier=4.0),
    noise_decay(noise_multiplier=4.0),
    dpsur(noise_multiplier=4.0, validation_batch_size=20),
    dpsur(noise_multiplier=4.0, validation_batch_size=20, hidden_attempts=True),
    sa_dpsgd(noise_multiplier=4.0),
    dpis(),
    dpis(norms="refresh"),
    dpagd(),
], ids=lambda method: f"{method.name}-{method.gate.candidates}")  # fmt: skip
def test_every_method_is_by_person(method: rt.methods.Method) -> None:
    pair, whose = visits(200, most=5)
    batch = 200 if method.name == "dpagd" else 40
    run = made(pair, whose, method, batch_size=batch, budget=Budget(9.0, DELTA), delta=None, size=200, most_rows=3)
    for _ in run:
        pass
    said = run.guarantee()
    assert (said.unit, said.adjacency, said.status) == ("person", "add-or-remove", "proved")
    assert said.epsilon <= 9.0
    if not run.plan.adaptive:
        assert run.ledger.tally() == run.plan.tally()
    assert {len(part) for part in run._vault.memory.values()} <= {200}


def test_plausible_deniability_is_by_person_and_promises_nothing() -> None:
    pair, whose = visits(60)
    run = made(pair, whose, rt.methods.get("pd_sgd"), batch_size=10)
    for _ in run:
        pass
    assert run.guarantee().status == "none"


def test_a_judge_hears_one_number_from_each_person() -> None:
    pair, whose = visits(30)
    run = made(pair, whose)
    people = by_person(pair, whose)
    assert isinstance(people, Persons)
    rng = np.random.default_rng(0)
    drawn = Drawn(Everyone().draw(run.plan.settings, 30, rng, {}), rng, {}, people)
    before = run._task.flat.vector + 0.1
    found = loss_changes(run._task, before, drawn, run._task.losses)
    mine = torch.from_numpy(np.flatnonzero(whose == 4))
    only = (pair[0][mine], pair[1][mine])
    here = cross_entropy(run.model, only).double().mean()
    with run._task.flat.moved_to(before):
        change = here - cross_entropy(run.model, only).double().mean()
    assert len(found) == 30
    assert float((found - change.detach()).abs().min()) < 1e-6


@pytest.mark.parametrize("rows", [1, 50])
def test_a_mean_is_moved_by_one_limit_however_many_rows(rows: int) -> None:
    def released(x: Tensor, whose: list[int]) -> Tensor:
        vault = Vault(
            by_person((x, torch.zeros(len(x))), whose),
            randomness=Randomness.from_seed(0),
            ledger=Ledger(),
            allowance=Planned([Gaussian(1e-9)]),
        )
        return 100 * release_mean(vault, lambda part: part, limit=0.5, noise_multiplier=1e-9, size=100)

    x = torch.tensor([[0.1, 0.0], [0.3, 0.0], [0.0, 0.2]])
    base = released(x, [0, 0, 1])
    torch.testing.assert_close(base, torch.tensor([0.2, 0.2], dtype=torch.float64), atol=1e-6, rtol=0)
    more = released(torch.cat([x, torch.full((rows, 2), 1000.0)]), [0, 0, 1] + [2] * rows)
    assert float((more - base).norm()) == pytest.approx(0.5, abs=1e-6)


# -- what is said ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "words"), [
    ({}, "one person's contribution (all their rows) removed or added, the number of persons being public"),
    ({"size": 40}, "add or remove one person (all their rows)"),
    ({"adjacency": "replace"}, "replace one person (all their rows)"),
])  # fmt: skip
def test_the_guarantee_says_whose_it_is(options: dict[str, Any], words: str) -> None:
    said = made(*visits(), **options).guarantee()
    assert words in str(said)
    stored = json.loads(json.dumps(said.to_json()))
    assert stored["unit"] == "person"
    assert read_guarantee(Fields(stored, "card.json")) == said


def test_older_files_are_by_example_and_unknown_units_are_refused() -> None:
    older = Guarantee("proved", 1.0, DELTA).to_json()
    del older["unit"]
    assert Guarantee.from_json(older).unit == "example"
    with pytest.raises(DataError, match="household"):
        read_guarantee(Fields(older | {"unit": "household"}, "card.json"))


def test_examples_that_say_whose_they_are_are_trained_by_person() -> None:
    (x, y), whose = visits()
    rows = Examples(x, y, groups=torch.from_numpy(whose))
    done = rt.fit(net(), rows, epsilon=3.0, epochs=1)
    assert done.guarantee.unit == "person"
    assert rt.fit(net(), (x, y), epsilon=3.0, epochs=1).guarantee.unit == "example", "nothing is assumed"
    assert done.evaluate(rows).keys() == done.evaluate(x, y).keys()
    with pytest.raises(SettingError, match="most_rows must be a whole number"):
        rt.fit(net(), rows, noise_multiplier=2.0, most_rows=2.5)  # type: ignore[arg-type]


# -- with other runs -------------------------------------------------------------------------------------------------


def test_runs_by_person_and_by_row_do_not_add_up(tmp_path: Path) -> None:
    pair, whose = visits()
    by_person = rt.fit(net(), pair, groups=whose, noise_multiplier=4.0, epochs=1, size=40)
    assert by_person.spending.unit == "person"
    again = rt.fit(by_person.model, pair, groups=whose, noise_multiplier=4.0, epochs=1, size=40, initial=by_person)
    assert again.guarantee.unit == "person"
    assert again.guarantee.epsilon > by_person.guarantee.epsilon
    with pytest.raises(SettingError, match="does not add up"):
        rt.fit(again.model, pair, noise_multiplier=4.0, epochs=1, size=40, initial=again)
    again.save(tmp_path)
    assert rt.load(tmp_path, net()).spending == again.spending


def test_a_dataset_is_capped_for_persons_or_for_rows(tmp_path: Path) -> None:
    pair, whose = visits()
    ledger = rt.DatasetLedger(tmp_path / "ledger.db")
    people, rows = (ledger.create(unit, epsilon=9.0, delta=DELTA, unit=unit) for unit in ("person", "example"))
    done = rt.fit(net(), pair, groups=whose, noise_multiplier=8.0, epochs=1, size=40, dataset=people)
    assert any("add or remove one person (all their rows)" in text for text in done.guarantee.covers)
    assert ledger["person"].unit == "person"
    assert 0 < people.share() < 1
    people.charge(Gaussian(50.0), note="a mean over persons")
    with pytest.raises(SettingError, match="does not add up"):
        rt.fit(net(), pair, noise_multiplier=8.0, epochs=1, size=40, dataset=people)
    with pytest.raises(SettingError, match="does not add up"):
        rt.fit(net(), pair, groups=whose, noise_multiplier=8.0, epochs=1, size=40, dataset=rows)


def test_normalising_in_one_line_is_by_person() -> None:
    pair, whose = visits()
    made_of = rt.normalise(pair, noise_multiplier=50.0, low=-3.0, high=3.0)
    done = rt.fit(net(), made_of, groups=whose, noise_multiplier=4.0, epochs=1, size=40)
    assert (done.guarantee.unit, done.spending.unit) == ("person", "person")
    assert done.spending.events[Gaussian(50.0)] == 2


# -- stopping and going on -------------------------------------------------------------------------------------------


def test_a_run_by_person_goes_on_where_it_stopped(tmp_path: Path) -> None:
    pair, whose = visits()
    whole = made(pair, whose, most_rows=2)
    for _ in whole:
        pass
    first = made(pair, whose, most_rows=2, folder=tmp_path, checkpoint_seconds=0.0)
    first.step()
    del first
    again = made(pair, whose, most_rows=2, folder=tmp_path, resume=True)
    assert again.number == 1
    for _ in again:
        pass
    assert torch.equal(again._task.flat.vector, whole._task.flat.vector)


@pytest.mark.parametrize(("change", "says"), [
    ({"groups": np.arange(1000)}, "examples differ"),
    ({"most_rows": 2}, "rows of a person"),
    ({"groups": None}, "rows of a person"),
])  # fmt: skip
def test_it_does_not_go_on_as_another(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    pair, whose = visits()
    made(pair, whose, size=40, folder=tmp_path)
    groups = change.pop("groups", whose)
    groups = groups[: len(whose)] if groups is not None else None
    with pytest.raises(ResumeError, match=says):
        made(pair, groups, size=40, folder=tmp_path, resume=True, **change)


def test_a_name_needs_named_columns() -> None:
    with pytest.raises(SettingError, match="no named column"):
        made(visits()[0], "patient_id")
