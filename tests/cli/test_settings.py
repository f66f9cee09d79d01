"""Settings: every one is explained, near names are found among all of them, and help comes by -h."""

from __future__ import annotations

import dataclasses
import json

import pytest
from typer.testing import CliRunner

from reticent import catalogue
from reticent.cli import app
from reticent.cli.settings import SAYS
from reticent.errors import UnknownName
from reticent.experiments.recipe import Recipe, check


def test_every_setting_of_a_recipe_is_explained() -> None:
    assert list(SAYS) == [field.name for field in dataclasses.fields(Recipe)]


@pytest.mark.parametrize("method", ["dpsgd", "dpsur", "dpis", "selena"])
def test_settings_lists_the_options_of_a_method_too(method: str) -> None:
    said = CliRunner().invoke(app, ["settings", method, "--json"])
    assert said.exit_code == 0
    assert set(json.loads(said.stdout)) == {*SAYS, *catalogue.options(method)}


def test_values_for_a_dataset_are_shown() -> None:
    said = CliRunner().invoke(app, ["settings", "--data", "digits"])
    assert said.exit_code == 0
    assert "that of the preset, or linear [linear]" in said.stdout
    assert "learning rate; by the rule" in said.stdout


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("epoch", "epochs"), ("momentun", "momentum"), ("validation_batch", "validation_batch_size")],
)
def test_a_wrong_name_finds_the_nearest_of_all_settings(wrong: str, near: str) -> None:
    with pytest.raises(UnknownName, match=f"did you mean '{near}'.*reticent settings dpsur"):
        check(Recipe(method="dpsur", options={wrong: 1}))


def test_help_by_one_letter() -> None:
    for words in (["-h"], ["train", "-h"], ["data", "-h"]):
        said = CliRunner().invoke(app, words)
        assert said.exit_code == 0
        assert "Usage" in said.stdout
