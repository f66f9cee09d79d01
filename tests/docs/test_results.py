"""Results: every file says how it was made, and the tables of the page are those of the files."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

RESULTS = Path(__file__).parents[2] / "results"
RUNS = sorted(path for path in RESULTS.glob("*.jsonl") if not path.stem.endswith("-attacks"))


@pytest.fixture(scope="module")
def collect() -> ModuleType:
    spec = importlib.util.spec_from_file_location("collect", RESULTS / "collect.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_those_of_the_files(collect: ModuleType) -> None:
    pages = [page.read_text() for page in collect.PAGES]
    assert [collect.with_tables(page) for page in pages] == pages
    shown = {name for page in pages for name in re.findall(r"<!-- table: (.*) -->", page)}
    assert set(collect.tables()) <= shown, "a file that no table shows"


def test_the_pages_of_the_papers_are_those_of_the_files(collect: ModuleType) -> None:
    assert {place: place.read_text() for place in collect.pages()} == collect.pages()


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_every_run_names_its_command_seed_and_commit(path: Path) -> None:
    for line in path.read_text().splitlines():
        record = json.loads(line)
        assert record["command"].startswith("reticent ")
        assert isinstance(record["seed"], int)
        assert re.fullmatch(r"[0-9a-f]{40}", record["commit"]), "made by code that was not committed"
        assert record["recipe"]["seed"] == record["seed"]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_no_epsilon_stands_there_that_is_not_proved(path: Path) -> None:
    for line in path.read_text().splitlines():
        record = json.loads(line)
        assert (record["epsilon"] is not None) == (record["guarantee"]["status"] == "proved")
        if record["target_epsilon"] is not None:
            assert record["epsilon"] <= record["target_epsilon"]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_nothing_was_tuned_on_the_test_examples(path: Path) -> None:
    """A reported run is scored on the test examples and a tuning run on others: searches have files of their own."""
    for line in path.read_text().splitlines():
        assert ("validation" in json.loads(line)["recipe"]) == path.stem.startswith("steps-")


def test_the_commands_are_those_of_the_script(collect: ModuleType) -> None:
    script = (RESULTS / "run.sh").read_text().replace('"$data"', "DATA")
    for command in collect.COMMANDS.values():
        assert re.sub(r"--data \S+", "--data DATA", command) in script
