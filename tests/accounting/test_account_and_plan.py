"""The commands `account` and `plan`: their flags, their JSON, their errors."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from reticent.cli.account import account
from reticent.cli.plan import plan
from reticent.errors import SettingError, UnknownName

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


FMNIST = words(sample_rate=2048 / 60000, noise_multiplier=2.15, validation_rate=256 / 60000, validation_noise=0.8)


def test_plain() -> None:
    answer = ask("account", "--method", "dpsgd", *words(sample_rate=0.01, noise_multiplier=1.0, steps=1000, delta=1e-5))
    assert set(answer) >= KEYS
    assert (answer["status"], answer["accountant"], answer["as_claimed"]) == ("proved", "pld", None)
    assert answer["epsilon"] == answer["pld"] < answer["rdp"]
    rdp = ask("account", *words(sample_rate=0.01, noise_multiplier=1.0, steps=1000, accountant="rdp"))
    assert (rdp["epsilon"], rdp["pld"], rdp["accountant"]) == (answer["rdp"], None, "rdp")
    assert rdp["order"] > 1


def test_dpsur_by_attempts() -> None:
    answer = ask("account", "--method", "dpsur", *FMNIST, "--beta", "-1", "--attempts", "2162")
    assert answer["route"] == "S"
    assert answer["rdp"] == pytest.approx(2.7806, abs=4e-4)
    assert answer["epsilon"] == answer["pld"] == pytest.approx(2.6375, abs=5e-4)
    claim = answer["as_claimed"]
    assert (claim["accepted"], claim["refuted"]) == (1081, True)
    assert claim["text"] == "as claimed by the paper; refuted: see docs/accounting.md"
    code = ask("account", "--method", "dpsur", *FMNIST, "--attempts", "2162", "--orders", "code")
    assert code["as_claimed"]["epsilon"] == pytest.approx(2.999, abs=1e-3)
    naive = ask("account", "--method", "dpsur", *FMNIST, "--attempts", "2162", "--route", "F")
    assert naive["epsilon"] > answer["epsilon"]


def test_dpsur_by_accepted_updates() -> None:
    answer = ask("account", "--method", "dpsur", *FMNIST, "--route", "C", "--accepted", "1081")
    assert (answer["route"], answer["pld"]) == ("C", None)
    assert answer["epsilon"] == pytest.approx(4.291, abs=3e-3)


def test_sa_dpsgd() -> None:
    mnist = words(sample_rate=512 / 60000, noise_multiplier=1.23, max_rejections=10)
    every = ask("account", "--method", "sa_dpsgd", *mnist, "--attempts", "9396")
    assert every["rdp"] == pytest.approx(3.769, abs=3e-3)
    assert every["pld"] is not None
    hidden = ask("account", "--method", "sa_dpsgd", *mnist, "--route", "C", "--accepted", "4698")
    assert hidden["epsilon"] == pytest.approx(6.835, rel=1e-3)
    assert hidden["as_claimed"]["epsilon"] == pytest.approx(3.0, abs=1e-3)
    private = ask(
        "account", "--method", "sa_dpsgd", *mnist, *words(attempts=9396, validation_rate=0.004, validation_noise=1)
    )
    assert private["epsilon"] > every["epsilon"]


def test_dpis() -> None:
    answer = ask(
        "account", "--method", "dpis",
        *words(data_size=6000, batch_size=600, epochs=5, epsilon=2, phase=0.6, kappa="1,0.8,0.6,0.5,0.4"),
        *words(size_noise=120),
    )  # fmt: skip
    assert (answer["epsilon"], answer["order"], answer["route"], answer["pld"]) == (2.0, 9, "filter", None)
    assert answer["noise"] == pytest.approx([1.891564, 1.870467, 1.822129, 1.582878, 1.544093], abs=1e-6)
    assert answer["as_claimed"]["noise"] == pytest.approx([1.890582, 1.869477, 1.821126, 1.581665, 1.542847], abs=1e-6)


@pytest.mark.parametrize("method", ["pd_sgd", "advreg", "selena"])
def test_no_guarantee_is_said(method: str) -> None:
    answer = ask("account", "--method", method)
    assert (answer["status"], answer["epsilon"], answer["rdp"], answer["pld"]) == ("none", None, None, None)
    text = CliRunner().invoke(app, ["account", "--method", method]).output
    assert text.startswith("no differential privacy: ")


def test_decay_and_statistics() -> None:
    decay = words(sample_rate=0.01, noise_multiplier=4, steps=5000, epochs=50, decay="exponential")
    assert ask("account", "--method", "noise_decay", *decay)["pld"] == pytest.approx(0.88386, rel=1e-3)
    plain = words(sample_rate=2048 / 60000, noise_multiplier=4.19828, steps=870, accountant="rdp", statistics_noise=8)
    assert ask("account", *plain)["epsilon"] == pytest.approx(1.2498, abs=3e-3)
    assert ask("account", "--method", "dpagd", "--epsilon", "1")["epsilon"] == 1.0


def test_words_for_people() -> None:
    text = CliRunner().invoke(app, ["account", "--method", "dpsur", *FMNIST, "--attempts", "100"]).output
    assert "proved (PLD)" in text
    assert "refuted: see docs/accounting.md" in text
    assert "assumes     the number of attempts was fixed" in text


def test_what_is_missing_or_wrong_is_named() -> None:
    run = CliRunner().invoke
    assert isinstance(run(app, ["account", "--method", "dpsur"]).exception, SettingError)
    assert "--sample-rate" in str(run(app, ["account", "--steps", "3"]).exception)
    assert isinstance(run(app, ["account", "--method", "dpsgdd"]).exception, UnknownName)
    assert "route" in str(run(app, ["account", "--method", "dpsur", *FMNIST, "--route", "X"]).exception)
    bad = words(data_size=600, batch_size=60, epochs=3, epsilon=2, kappa="1,x")
    assert "list of numbers" in str(run(app, ["account", "--method", "dpis", *bad]).exception)
    assert "rate" in str(run(app, ["account", *words(sample_rate=1.5, noise_multiplier=1, steps=3)]).exception)


def test_plans() -> None:
    answer = ask("plan", *words(epsilon=2, data_size=60000, batch_size=2048, epochs=30))
    assert answer["found"] == "noise_multiplier"
    assert answer["steps"] == 879
    assert answer["guarantee"]["epsilon"] <= 2.0
    steps = ask("plan", *words(epsilon=2, noise_multiplier=answer["noise_multiplier"], sample_rate=2048 / 60000))
    assert steps["steps"] == pytest.approx(879, abs=2)
    dpis = ask("plan", "--method", "dpis", *words(epsilon=4, data_size=60000, batch_size=2048, epochs=30, kappa=0.5))
    assert (dpis["order"], len(dpis["noise_multiplier"])) == (6, 30)


def test_the_plan_of_pd_sgd(tmp_path) -> None:
    figure = tmp_path / "figure.svg"
    answer = ask("plan", "--method", "pd_sgd", *words(sigma=0.1, gamma=4, distance="0.25,0.04", figure=figure))
    assert answer["largest_distance"]["0.05"] == pytest.approx(0.24097977, abs=1e-8)
    assert answer["pass_chance"]["0.25"] == pytest.approx(0.04408203862, abs=1e-10)
    assert answer["normalised"]["1e-05"] == pytest.approx(0.010698908, abs=1e-9)
    assert figure.read_text().startswith("<svg")
    assert figure.read_text().count("<polyline") == 10


def test_accounting_starts_without_torch() -> None:
    code = "import sys, reticent.cli.account, reticent.accounting.quote; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
