"""The budget of a dataset: what is charged, what is refused, and why."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from reticent.accounting import Concentrated, Gaussian, RenyiFilter, SelectiveAttempt, SelectiveRelease, Unbounded
from reticent.accounting.spending import Filtered, Spending, spending_of
from reticent.budgets import DatasetLedger
from reticent.budgets.database import Database, place_of
from reticent.errors import BudgetSpent, DataError, SettingError, UnknownName


@pytest.fixture
def ledger(sqlite: str) -> DatasetLedger:
    return DatasetLedger(sqlite)


def test_a_cap_is_what_the_filter_lets_pass(ledger: DatasetLedger) -> None:
    dataset = ledger.create("a", epsilon=3.0, delta=1e-5)
    filter = RenyiFilter(dataset.order, 3.0, 1e-5)
    passed = 0
    while filter.covers(Gaussian(10.0)):
        dataset.charge(Gaussian(10.0), note="mean")
        filter.spend(Gaussian(10.0))
        passed += 1
    assert passed > 10
    with pytest.raises(BudgetSpent, match=r"% of its cap of epsilon 3 left"):
        dataset.charge(Gaussian(10.0), note="mean")
    assert len(dataset.history()) == passed  # what is refused is not charged
    assert str(dataset).startswith("(3.00, 1e-05)-DP, add or remove one example, by a Renyi filter of order 7.5")


def test_more_small_runs_fit_than_their_epsilons_add_up_to(ledger: DatasetLedger) -> None:
    dataset = ledger.create("a", epsilon=8.0, delta=1e-5)
    from reticent.accounting.calibrate import noise_multiplier

    noise = noise_multiplier(1.0, 1e-5, 1.0, 1)
    share = dataset.share([dataset.charge(Gaussian(noise), note="epsilon 1")])
    assert 1 / 40 < share < 1 / 30  # adding epsilons up, there would be room for eight


@pytest.mark.parametrize(
    ("spending", "why"),
    [
        (Spending({Unbounded("the test has no noise"): 1}), "the test has no noise"),
        (Spending({Gaussian(0.0): 1}), "no proof covers"),
        (Spending({SelectiveRelease(SelectiveAttempt(0.1, 2.0, 0.1, 0.1, 0.9), cap=5): 1}), "cap on hidden attempts"),
        (spending_of([Gaussian(5.0)], declared=False), "counted on them"),
        (Spending(filters=(Filtered(2.0, 0.1, "add-or-remove"),)), "a filter of order 2 chose its releases"),
        (Spending(filters=(Filtered(20.0, 0.1, "zero-out"),)), "a filter chose its releases for zero-out"),
    ],
    ids=["no proof", "no noise", "cap", "counted", "order", "neighbours"],
)
def test_what_is_not_proved_is_refused_with_the_reason(ledger: DatasetLedger, spending: Spending, why: str) -> None:
    dataset = ledger.create("a", epsilon=8.0, delta=1e-5)
    with pytest.raises(BudgetSpent, match=why):
        dataset.charge(spending, note="")
    assert dataset.history() == []


def test_a_counted_size_is_no_matter_where_the_number_is_public(ledger: DatasetLedger) -> None:
    for adjacency in ("zero-out", "replace"):
        dataset = ledger.create(adjacency, epsilon=8.0, delta=1e-5, adjacency=adjacency)
        dataset.charge(Gaussian(5.0), note="", declared=False)
    shares = [ledger[name].share() for name in ("zero-out", "replace")]
    assert shares[1] > 3 * shares[0]  # to replace is two steps away


def test_what_a_filter_chose_counts_with_its_limit(ledger: DatasetLedger) -> None:
    dataset = ledger.create("a", epsilon=8.0, delta=1e-5, adjacency="zero-out")
    kept = Filtered(20.0, 0.5, "add-or-remove")
    assert dataset.share([dataset.charge(Spending(filters=(kept,)), note="")]) == pytest.approx(0.5 / dataset.limit)


def test_an_id_is_charged_once(ledger: DatasetLedger) -> None:
    dataset, other = (ledger.create(name, epsilon=8.0, delta=1e-5) for name in ("a", "b"))
    dataset.reserve(spending_of([Gaussian(5.0)]), run="one")
    for place in (dataset, other):
        with pytest.raises(SettingError, match="run one was charged before"):
            place.reserve(spending_of([Gaussian(5.0)]), run="one")
    assert len(dataset.history()) == 1
    assert other.history() == []


def test_a_charge_is_read_back_as_it_was_made(place: str) -> None:
    dataset = DatasetLedger(place).create("read back", epsilon=8.0, delta=1e-5, adjacency="replace", order=4.5)
    planned = Spending({Gaussian(5.0): 3, Concentrated(1e-3): 1}, (Filtered(20.0, 0.1, "replace"),), declared=False)
    made = dataset.reserve(planned, before=spending_of([Gaussian(50.0)]), run="r", method="dpsgd")
    again = DatasetLedger(place)["read back"]
    assert again.history() == [made]
    assert (again.cap, again.order) == (dataset.cap, 4.5)


def test_names_and_caps_that_cannot_be(ledger: DatasetLedger) -> None:
    with pytest.raises(SettingError, match="holds no dataset"):
        ledger["a"]
    ledger.create("a", epsilon=8.0, delta=1e-5)
    with pytest.raises(SettingError, match="its cap is fixed"):
        ledger.create("a", epsilon=9.0, delta=1e-5)
    with pytest.raises(UnknownName, match="did you mean 'a'"):
        ledger["aa"]
    for wrong in ({"epsilon": 0.0}, {"delta": 1.0}, {"adjacency": "near"}, {"order": 1.0}, {"epsilon": 1e-9}):
        with pytest.raises((SettingError, UnknownName)):
            ledger.create("b", **({"epsilon": 8.0, "delta": 1e-5} | wrong))  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="needs a name"):
        ledger.create("", epsilon=8.0, delta=1e-5)
    assert list(ledger) == ["a"]
    assert len(ledger) == 1


def test_where_a_ledger_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RETICENT_LEDGER", str(tmp_path / "there.sqlite"))
    assert place_of() == str(tmp_path / "there.sqlite")
    monkeypatch.delenv("RETICENT_LEDGER")
    assert place_of().endswith("ledger.sqlite")
    assert not Database(str(tmp_path / "none" / "ledger.sqlite")).made
    assert not (tmp_path / "none").exists()  # to look makes nothing
    for wrong in ("sqlite://", "mysql://here/x", "no such://", "oracle+nothing://x"):
        with pytest.raises(SettingError):
            Database(wrong)
    secret = Database("postgresql://me:hush@127.0.0.1:1/x")
    assert "hush" not in str(secret)
    with pytest.raises(SettingError, match="cannot be used, and nothing was charged") as told:
        secret.make()
    assert "hush" not in str(told.value)


def test_what_a_newer_build_wrote_costs_infinity(ledger: DatasetLedger, sqlite: str) -> None:
    dataset = ledger.create("a", epsilon=8.0, delta=1e-5)
    dataset.charge(Gaussian(5.0), note="")
    with dataset.database.transaction() as connection:
        connection.exec_driver_sql("UPDATE reticent_charges SET planned = replace(planned, 'Gaussian', 'Quantum')")
    assert math.isinf(dataset.share())
    with pytest.raises(BudgetSpent):
        dataset.charge(Gaussian(500.0), note="")
    with dataset.database.transaction() as connection:
        connection.exec_driver_sql("UPDATE reticent_charges SET planned = '{}'")
    with pytest.raises(DataError, match="no spending of ours"):
        dataset.share()
    with dataset.database.transaction() as connection:
        connection.exec_driver_sql("UPDATE reticent_datasets SET version = 3")
    with pytest.raises(SettingError, match="newer Reticent"):
        ledger["a"]


@pytest.mark.parametrize("with_unit", [True, False])
def test_a_ledger_of_version_1_is_brought_up_to_date(ledger: DatasetLedger, with_unit: bool) -> None:
    dataset = ledger.create("a", epsilon=8.0, delta=1e-5)
    dataset.charge(Gaussian(5.0), note="")
    share = dataset.share()
    with dataset.database.transaction() as connection:
        connection.exec_driver_sql("UPDATE reticent_datasets SET version = 1")
        if not with_unit:
            connection.exec_driver_sql("ALTER TABLE reticent_datasets DROP COLUMN unit")
    ledger.create("b", epsilon=1.0, delta=1e-5, unit="person")
    assert (ledger["a"].unit, ledger["b"].unit) == ("example", "person")
    assert ledger["a"].share() == share
