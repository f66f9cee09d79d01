"""One's own model, from the command line: a folder that was made in Python, and a factory wherever a model is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from reticent.cli import app
from reticent.errors import DataError, SettingError
from reticent.experiments.repeat import repeatable
from reticent.experiments.stored import with_parts
from reticent.results import read_result

pytestmark = pytest.mark.usefixtures("one_probe")
NAMED = ["--data", "visits.toml", "--model", "own_networks:make_model"]
SHADOWS = ["--models", "4", "--records", "40", "--attacks", "loss,lira"]


def run(*arguments: str) -> str:
    return str(CliRunner().invoke(app, list(arguments), catch_exceptions=False).stdout)


def test_report_attack_and_audit_of_a_folder_made_in_python(mine: Any, on_disk: Path) -> None:
    mine.fit(on_disk / "a")
    assert json.loads(run("report", "a", "--without-privacy", "0.95", "--json"))["runs"] == 1
    assert "95.0 %" in (on_disk / "a" / "report.html").read_text()
    said = run("attack", "a", *NAMED, *SHADOWS).splitlines()[-1]
    assert "better than guessing" in said
    audited = run("audit", "a", *NAMED, "--canaries", "30", "--runs", "20", "--seed", "0").splitlines()
    assert audited[0].startswith("consistent: epsilon > ")
    assert audited[1].startswith("Nothing contradicts the claim")
    run("report", "a")
    page = (on_disk / "a" / "report.html").read_text()
    assert said in page
    assert audited[1] in page


def test_what_is_not_on_record_is_asked_for_exactly(mine: Any, on_disk: Path) -> None:
    mine.fit(on_disk / "a")
    with pytest.raises(SettingError, match=r"give --data NAME .* and --model package.module:function; or, in Python"):
        run("attack", "a", *SHADOWS)
    with pytest.raises(SettingError, match="its model are not on record: give --model"):
        run("attack", "a", *NAMED[:2], *SHADOWS)
    with pytest.raises(SettingError, match="--canaries 0 audits the ledger and one step alone"):
        run("audit", "a")
    assert run("audit", "a", "--canaries", "0", "--runs", "20", "--seed", "0").startswith("consistent")
    with pytest.raises(DataError, match="learned from 150 examples, and digits holds 1437"):
        run("attack", "a", "--data", "digits", "--model", "linear", *SHADOWS)


def test_what_a_recipe_cannot_say_is_attacked_in_python_only(mine: Any, on_disk: Path) -> None:
    mine.fit(on_disk / "a", optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1))
    with pytest.raises(SettingError, match="with its own optimizer, which no recipe can say; or, in Python"):
        run("attack", "a", *NAMED, *SHADOWS)


def test_by_its_names_a_fit_is_repeated_bit_for_bit(mine: Any, on_disk: Path) -> None:
    trained = mine.fit(on_disk / "a")
    result = with_parts(read_result(on_disk / "a"), data="visits.toml", model="own_networks:make_model")
    again = repeatable(result)
    for name, part in again.train(again.dataset.train, seed=3).model.state_dict().items():
        assert torch.equal(part, trained.model.state_dict()[name]), name


def test_train_and_compare_take_any_module(on_disk: Path) -> None:
    few = ["--epochs", "1", "--set", "batch_size=30"]
    answer = json.loads(run("train", *NAMED, *few, "--epsilon", "3", "--seed", "0", "--out", "t", "--json"))
    assert answer["recipe"]["model"] == "own_networks:make_model"
    result = read_result(on_disk / "t")
    assert (result.title, result.class_names) == ("Visits", ("stays", "leaves", "returns"))
    said = run("compare", *NAMED, *few, "--methods", "auto_s", "--epsilons", "3", "--out", "c")
    assert "Budgets add up: whoever picks a row for its accuracy here spends epsilon 6.00" in said
    page = (on_disk / "c" / "report.html").read_text()
    assert "Private training on Visits" in page
    assert "Picking it here costs epsilon 6.00" in page
    assert "better than guessing" in run("attack", "t", *SHADOWS), "a recipe with a factory has all its names"
    with pytest.raises(SettingError, match="leave out --data and --model"):
        run("attack", "t", *NAMED, *SHADOWS)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("own_networks:make_modle", "has no attribute 'make_modle'"),
        ("no_such_networks:make_model", "No module named 'no_such_networks'"),
        ("own_networks:__name__", "is a str: name a function or a class"),
        ("own_networks:no_model", "made a int: it must make a torch.nn.Module"),
        (":make_model", "package.module:function"),
    ],
)
@pytest.mark.usefixtures("on_disk")
def test_a_wrong_factory_is_told_by_its_name(name: str, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        run("train", "--data", "visits.toml", "--model", name, "--epsilon", "3", "--epochs", "1")
