"""The commands `account` and `plan`: their flags, their JSON, their errors."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from reticent.cli.account import account
from reticent.cli.plan import plan
from reticent.errors import ReticentError, SettingError, UnknownName

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(account)
app.command()(plan)

KEYS = {"epsilon", "delta", "status", "route", "order", "accountant", "rdp", "pld", "as_claimed"}


def ask(*words: str) -> dict:
    result = CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def words(**flags: object) -> list[str]:
    return [part for name, value in flags.items() for part in ("--" + name.replace("_", "-"), str(value))]


def settings(**values: object) -> list[str]:
    return [part for name, value in values.items() for part in ("--set", f"{name}={value}")]


FMNIST = [
    *words(data_size=60000, batch_size=2048, noise_multiplier=2.15, delta=1e-5),
    *settings(validation_noise=0.8, validation_batch_size=256),
]


def test_plain() -> None:
    answer = ask("account", "--method", "dpsgd", *words(sample_rate=0.01, noise_multiplier=1.0, steps=1000, delta=1e-5))
    assert set(answer) >= KEYS
    assert (answer["status"], answer["accountant"], answer["as_claimed"]) == ("proved", "pld", None)
    assert answer["epsilon"] == answer["pld"] < answer["rdp"]
    rdp = ask("account", *words(sample_rate=0.01, noise_multiplier=1.0, rounds=1000, accountant="rdp"))
    assert (rdp["epsilon"], rdp["pld"], rdp["accountant"]) == (answer["rdp"], None, "rdp")
    assert rdp["order"] > 1
    sized = ask("account", *words(data_size=60000, batch_size=600, noise_multiplier=1.0, rounds=1000, delta=1e-5))
    assert sized["epsilon"] == answer["epsilon"]


def test_delta_follows_from_the_data_size_as_in_training() -> None:
    assert ask("account", *words(sample_rate=0.01, noise_multiplier=1, rounds=9))["delta"] == 1e-5
    large = words(data_size=600_000, batch_size=600, noise_multiplier=1, rounds=9)
    assert ask("account", *large)["delta"] == 1 / 6_000_000


def test_dpsur_by_attempts() -> None:
    answer = ask("account", "--method", "dpsur", *FMNIST, "--attempts", "2162")
    assert (answer["route"], answer["route_name"], answer["attempts"]) == ("S", "per_attempt", 2162)
    assert answer["rdp"] == pytest.approx(2.7806, abs=4e-4)
    assert answer["epsilon"] == answer["pld"] == pytest.approx(2.6375, abs=5e-4)
    claim = answer["as_claimed"]
    assert (claim["accepted"], claim["refuted"]) == (1081, True)
    assert claim["text"] == "as claimed by the paper; refuted: see docs/accounting.md"
    code = ask("account", "--method", "dpsur", *FMNIST, "--attempts", "2162", "--orders", "code")
    assert code["as_claimed"]["epsilon"] == pytest.approx(2.999, abs=1e-3)
    naive = ask("account", "--method", "dpsur", *FMNIST, "--attempts", "2162", *settings(seen_attempts="true"))
    assert naive["route"] == "F"
    assert naive["epsilon"] > answer["epsilon"]
    smooth = ask("account", "--method", "dpsur", *FMNIST, "--attempts", "2162", *settings(test="smooth"))
    assert smooth["status"] == "proved"


@pytest.mark.slow
def test_dpsur_by_accepted_updates() -> None:
    answer = ask("account", "--method", "dpsur", *FMNIST, "--rounds", "1081", *settings(hidden_attempts="true"))
    assert (answer["route"], answer["accepted"], answer["pld"]) == ("C", 1081, None)
    assert answer["epsilon"] == pytest.approx(4.291, abs=3e-3)


def test_sa_dpsgd() -> None:
    mnist = words(data_size=61000, batch_size=512, noise_multiplier=1.23, delta=1e-5)
    public = settings(holdout=1000)  # is taken off the private examples, as in a run
    every = ask("account", "--method", "sa_dpsgd", *mnist, *public, "--attempts", "9396")
    assert every["rdp"] == pytest.approx(3.769, abs=3e-3)
    assert every["pld"] is not None
    hidden = ask(
        "account", "--method", "sa_dpsgd", *mnist, *public, *settings(hidden_attempts=True), "--rounds", "4698"
    )
    assert hidden["epsilon"] == pytest.approx(6.835, rel=1e-3)
    assert hidden["as_claimed"]["epsilon"] == pytest.approx(3.0, abs=1e-3)
    private = ask("account", "--method", "sa_dpsgd", *mnist, "--attempts", "9396", *settings(validation_noise=1))
    assert private["epsilon"] > every["epsilon"]


def test_dpis() -> None:
    answer = ask("account", "--method", "dpis", *words(data_size=6000, batch_size=600, epochs=5, epsilon=2))
    assert (answer["epsilon"], answer["route"], answer["pld"]) == (2.0, "filter", None)
    assert "repairs" in answer["as_claimed"]["text"]


@pytest.mark.parametrize("method", ["pd_sgd", "advreg", "selena"])
def test_no_guarantee_is_said(method: str) -> None:
    given = ["account", "--method", method, *words(data_size=100, batch_size=10, rounds=3)]
    answer = ask(*given)
    assert (answer["status"], answer["epsilon"], answer["rdp"], answer["pld"]) == ("none", None, None, None)
    text = CliRunner().invoke(app, given).output
    assert text.startswith("no differential privacy: ")


def test_decay_and_statistics() -> None:
    decay = words(sample_rate=0.01, noise_multiplier=4, epochs=50)
    assert ask("account", "--method", "noise_decay", *decay)["pld"] == pytest.approx(0.88386, rel=1e-3)
    plain = words(sample_rate=2048 / 60000, noise_multiplier=4.19828, steps=870, accountant="rdp")
    assert ask("account", *plain, *settings(statistics_noise=8))["epsilon"] == pytest.approx(1.2498, abs=3e-3)
    assert ask("account", "--method", "dpagd", *words(epsilon=1, data_size=99, rounds=60))["epsilon"] == 1.0


def test_a_dataset_brings_its_size_and_settings() -> None:
    answer = ask("account", "--data", "digits", "--method", "dpsur", "--epsilon", "3")
    assert (answer["batch_size"], answer["rounds"]) == (179, 300)  # by the rule, as a run would have them
    assert answer["epsilon"] <= 3.0


def test_words_for_people() -> None:
    text = CliRunner().invoke(app, ["account", "--method", "dpsur", *FMNIST, "--attempts", "100"]).output
    assert "proved (PLD)" in text
    assert "refuted: see docs/accounting.md" in text
    assert "assumes     a rejected candidate is never seen" in text
    text = CliRunner().invoke(app, ["plan", "--data", "digits", "--epsilon", "3", *settings(whiten=5)]).output
    assert "released first, in the price: Gaussian(noise_multiplier=5.0)" in text


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        (["--method", "dpsur"], SettingError, "--data-size"),
        (["--steps", "3"], SettingError, "batch_size"),
        (["--method", "dpsgdd"], UnknownName, "dpsgd"),
        (["--method", "dpsur", *FMNIST, "--rounds", "3", *settings(bet=1)], UnknownName, "beta"),
        (words(sample_rate=1.5, noise_multiplier=1, steps=3), SettingError, "rate"),
        (words(batch_size=10, noise_multiplier=1, steps=3), SettingError, "--data-size"),
        (words(sample_rate=0.1, noise_multiplier=1, steps=3, epochs=2), SettingError, "not both"),
        (words(sample_rate=0.1, noise_multiplier=1, steps=3, accountant="best!"), UnknownName, "accountant"),
        (words(sample_rate=0.1, noise_multiplier=1, steps=3, orders="few"), UnknownName, "orders"),
        (["--data", "digits", "--data-size", "5"], SettingError, "--data"),
    ],
)
def test_what_is_missing_or_wrong_is_named(given: list[str], kind: type[ReticentError], says: str) -> None:
    error = CliRunner().invoke(app, ["account", *given]).exception
    assert isinstance(error, kind)
    assert says in str(error)


def test_plans() -> None:
    answer = ask("plan", *words(epsilon=2, data_size=60000, batch_size=2048, epochs=30))
    assert answer["found"] == "noise_multiplier"
    assert (answer["steps"], answer["rounds"]) == (879, 879)
    assert answer["guarantee"]["epsilon"] <= 2.0
    noise = words(epsilon=2, noise_multiplier=answer["noise_multiplier"], data_size=60000)
    rounds = ask("plan", *noise, *words(batch_size=2048))
    assert (rounds["found"], rounds["rounds"]) == ("steps", 879)
    batch = ask("plan", *noise, *words(rounds=879))
    assert (batch["found"], batch["batch_size"]) == ("batch_size", 2048)
    rate = ask("plan", *words(epsilon=2, noise_multiplier=1, rounds=1000))
    assert rate["found"] == "sample_rate"
    assert 0.01 < rate["sample_rate"] < 0.02
    dpis = ask("plan", "--method", "dpis", *words(epsilon=4, data_size=60000, batch_size=2048, epochs=30, delta=1e-5))
    assert dpis["order"] == 6
    attempts = ask("plan", "--method", "dpsur", *FMNIST, *words(epsilon=2))
    assert attempts["found"] == "attempts"


def test_a_plan_of_decaying_noise_is_never_above_its_budget() -> None:
    """Once `plan` counted an epoch's rounds in a way of its own, and the run it planned cost 2.0086."""
    sizes = words(data_size=61234, batch_size=1999, epochs=27)
    for schedule in ("time", "exponential", "step", "polynomial"):
        shared = ["--method", "noise_decay", *settings(schedule=schedule), "--delta", "1e-5"]
        planned = ask("plan", *shared, *sizes, *words(epsilon=2))
        cost = ask("account", *shared, *sizes, *words(noise_multiplier=planned["noise_multiplier"]))
        assert cost["epsilon"] == planned["guarantee"]["epsilon"] <= 2.0


def test_what_cannot_be_planned_is_named() -> None:
    run = CliRunner().invoke
    assert "--epsilon" in str(run(app, ["plan", *words(sample_rate=0.1, steps=3)]).exception)
    assert "no epsilon to plan for" in str(run(app, ["plan", "--method", "selena", "--epsilon", "1"]).exception)
    assert "noise_multiplier" in str(run(app, ["plan", *words(epsilon=1, sample_rate=0.1)]).exception)
    assert "list of numbers" in str(run(app, ["plan", "--method", "pd_sgd", "--distance", "1,x"]).exception)


def test_the_plan_of_pd_sgd(tmp_path) -> None:
    figure = tmp_path / "figure.svg"
    width = settings(noise_std=0.1, gamma=4)
    answer = ask("plan", "--method", "pd_sgd", *width, *words(distance="0.25,0.04", figure=figure))
    assert answer["largest_distance"]["0.05"] == pytest.approx(0.24097977, abs=1e-8)
    assert answer["pass_chance"]["0.25"] == pytest.approx(0.04408203862, abs=1e-10)
    assert answer["normalised"]["1e-05"] == pytest.approx(0.010698908, abs=1e-9)
    assert figure.read_text().startswith("<svg")
    assert figure.read_text().count("<polyline") == 10


def test_pd_sgd_is_tuned_by_theory() -> None:
    """Appendix E: every noise has the width at which the largest distance passes so rarely; nearer ones pass more."""
    answer = ask("plan", "--method", "pd_sgd", "--tune", *settings(noise_std=0.1), *words(distance="0.1,0.24097977"))
    assert [row["sigma"] for row in answer["settings"]] == pytest.approx([0.025, 0.05, 0.1, 0.2, 0.4])
    assert answer["settings"][2]["gamma"] == pytest.approx(4.0, abs=1e-4)
    for row in answer["settings"]:
        near, far = row["pass_chance"].values()
        assert far == pytest.approx(0.05)
        assert near > far
    far = ask("plan", "--method", "pd_sgd", "--tune", *settings(noise_std=0.005), *words(distance="0.2"))
    assert [row["pass_chance"]["0.2"] for row in far["settings"]] == pytest.approx([0.05] * 5)
    with pytest.raises(SettingError, match="--distance"):
        ask("plan", "--method", "pd_sgd", "--tune")


def test_adjacency() -> None:
    """Data of a known size are zero-out; a declared size is add-or-remove at the same price; replacing costs more."""
    numbers = words(batch_size=600, noise_multiplier=1.0, rounds=1000, delta=1e-5)
    known, declared = (ask("account", *numbers, flag, "60000") for flag in ("--data-size", "--size"))
    assert (known["adjacency"], declared["adjacency"]) == ("zero-out", "add-or-remove")
    assert known["epsilon"] == declared["epsilon"]
    other = ask("account", *numbers, *words(data_size=60000, adjacency="replace"))
    assert other["epsilon"] == pytest.approx(3.11125, rel=1e-4)
    assert (other["adjacency"], other["accountant"], other["pld"]) == ("replace", "rdp", None)
    budget = words(epsilon=2, batch_size=600, epochs=10)
    few, many = (ask("plan", *budget, *words(size=60000), *more) for more in ([], words(adjacency="replace")))
    assert few["noise_multiplier"] < many["noise_multiplier"]
    assert "replace one example" in many["says"]
    with pytest.raises(SettingError, match="give size"):
        ask("account", *numbers, *words(data_size=60000, adjacency="add-or-remove"))
    with pytest.raises(SettingError, match="--data-size"):
        ask("account", *numbers, *words(data_size=60000, size=60000))
