"""The page as a file: whole, self-contained, harmless, and public."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from dataclasses import asdict
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from reticent.errors import DataError
from reticent.report import read, write_page
from reticent.report.facts import ROC_POINTS, facts
from reticent.report.page import render
from reticent.report.summary import summarise

VENDOR = files("reticent.report") / "vendor"


class Reader(HTMLParser):
    """The page's elements, and the text of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]


def embedded(page: str, name: str) -> Any:
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture
def page(folder: Path) -> str:
    return write_page(folder).read_text()


def test_it_asks_nothing_of_the_network(page: str) -> None:
    reader = Reader(page)
    for tag, attributes in reader.elements:
        for name in ("src", "href", "action", "data"):
            address = attributes.get(name) or "#"
            assert address.startswith("#") or address == "data:,", f"{tag} {name}={address}"
    ours = "".join(reader.scripts[-1:])
    assert "http" not in ours
    assert "fetch(" not in ours
    assert "@import" not in page
    assert "url(" not in "".join(re.findall(r"<style>(.*?)</style>", page, re.S))


def test_it_is_small(page: str) -> None:
    assert len(page.encode()) < 1_500_000


def test_what_runs_say_cannot_become_part_of_the_page(page: str) -> None:
    assert "window.hacked = true" in page
    reader = Reader(page)
    assert not any("hacked" in script and not script.startswith(("{", "[")) for script in reader.scripts)
    assert len(reader.scripts) == 5
    assert "</script><script>window" not in page


def test_the_charts_libraries_are_as_published_and_keep_their_licences(page: str) -> None:
    for library in tomllib.loads((VENDOR / "vendor.toml").read_text())["library"]:
        code = (VENDOR / library["file"]).read_bytes()
        assert hashlib.sha256(code).hexdigest() == library["sha256"]
        assert library["licence"].strip() in page
        assert code.decode() in page


def test_private_diagnostics_are_shown_only_when_asked_for_and_flagged(folder: Path) -> None:
    public = write_page(folder).read_text()
    assert embedded(public, "facts")["private"] == []
    assert "chart-private" not in [attributes.get("id") for attributes in Reader(public).named("div")]
    private = write_page(folder, private=True).read_text()
    assert len(embedded(private, "facts")["private"]) == 50
    assert all(record["private"] for record in embedded(private, "facts")["private"])
    assert "Private page." in private


def test_every_run_and_every_failure_is_in_the_tables(page: str, folder: Path) -> None:
    for run in read(folder).runs:
        assert run.run in page
    assert "1</p>\n      <p>of 31 runs did not get to their end" in page


def test_statements_are_there_as_data_too(page: str) -> None:
    statements = embedded(page, "statements")
    assert len(statements) == 10
    assert all(len(stated) == 4 + 15 for stated in statements)


def test_attacks_are_thinned_and_come_with_what_is_permitted(folder: Path) -> None:
    results = read(folder)
    drawn = {(entry["of"], entry["attack"]): entry for entry in facts(results, summarise(results.runs))["attacks"]}
    mine = drawn["DP-SGD, epsilon 3, seed 0", "LiRA online"]
    assert len(mine["roc"]) <= ROC_POINTS + 2
    assert mine["roc"][0] == (0.0, 0.0)
    assert mine["roc"][-1] == (1.0, 1.0)
    assert mine["permitted"][-1] == (1.0, 1.0)
    assert drawn["Without privacy, seed 0", "LiRA online"]["permitted"] is None


def test_histograms_are_those_of_the_attack(folder: Path) -> None:
    results = read(folder)
    drawn = {(entry["of"], entry["attack"]): entry for entry in facts(results, summarise(results.runs))["histograms"]}
    mine = drawn["DP-SGD, epsilon 3, seed 0", "LiRA online"]
    stored = next(entry for entry in results.attacks if entry.attack == "LiRA online" and entry.run[0] == "d")
    assert {name: mine[name] for name in ("edges", "members", "outsiders")} == asdict(stored.histogram)
    assert sum(mine["members"]) == pytest.approx(2000, abs=10)


def test_an_own_permitted_curve_wins(folder: Path, records: Any) -> None:
    curve = {"fpr": [0.0, 1.0], "tpr": [0.1, 1.0]}
    (folder / "attacks.json").write_text(
        json.dumps(records.attack("mine", 0.1, 0, run="dpsgd-eps3-seed0", permitted=curve))
    )
    results = read(folder)
    drawn = facts(results, summarise(results.runs))["attacks"]
    assert next(entry for entry in drawn if entry["attack"] == "mine")["permitted"] == [(0.0, 0.1), (1.0, 1.0)]


def test_the_answers_of_the_attack_and_audit_commands_are_understood(folder: Path, records: Any) -> None:
    """`reticent attack runs/a` leaves attack/attack.json there; an audit of a method names no run."""
    pictures = ("fpr", "tpr", "histogram")  # which older answers do not have
    bare = {name: value for name, value in records.attack("rmia", 0.5, 0).items() if name not in pictures}
    answer = {"run": "elsewhere/auto_s-eps1-seed0", "attacks": [bare], "blind": bare | {"attack": "blind"}}
    answer["above_what_is_permitted"] = ["rmia"]
    place = folder / "runs" / "auto_s-eps1-seed0" / "attack"
    place.mkdir(parents=True)
    (place / "attack.json").write_text(json.dumps(answer))
    audit = {"method": "dpadam", "verdict": "consistent", "lower": 0.5, "upper": None, "confidence": 0.95}
    (folder / "audit.json").write_text(json.dumps(audit))
    results = read(folder)
    mine = [entry.attack for entry in results.attacks if entry.run == "auto_s-eps1-seed0"]
    assert mine == ["rmia", "blind"]
    page = write_page(folder).read_text()
    assert "DP-Adam" in page
    assert page.count("beyond the guarantee</span>") == 1, "an alarm must be seen"
    assert len(embedded(page, "facts")["attacks"]) == 3, "only what has a ROC is drawn"
    assert len(embedded(page, "facts")["histograms"]) == 3


def test_attacks_without_any_picture_are_a_table_alone(folder: Path, records: Any) -> None:
    for path in folder.rglob("attacks.json"):
        path.unlink()
    bare = records.attack("rmia", 0.5, 0, run="auto_s-eps1-seed0", fpr=None, tpr=None, histogram=None)
    (folder / "attacks.json").write_text(json.dumps(bare))
    page = write_page(folder).read_text()
    identities = [attributes.get("id") for _, attributes in Reader(page).elements]
    assert "attacks" in identities
    assert not {"chart-attacks", "chart-scores", "attacked"} & set(identities)


def test_an_audit_shows_the_run_and_its_step(folder: Path) -> None:
    step = {"lower": 0.8, "upper": 1.3, "delta": 1e-5}
    audit = {"name": "one run, 100 canaries", "verdict": "consistent", "lower": 0.1, "upper": 3.0, "confidence": 0.95}
    place = folder / "runs" / "dpsgd-eps3-seed0" / "audit.json"
    place.write_text(json.dumps(audit | {"step": step, "said_by": []}))
    (folder / "audit.json").unlink()
    assert [(entry.name, entry.lower, entry.upper) for entry in read(folder).audits] == [
        ("one run, 100 canaries", 0.1, 3.0),
        ("one step", 0.8, 1.3),
    ]
    said = next(
        said
        for said in embedded(write_page(folder).read_text(), "statements")
        if "DP-SGD at epsilon 3" in said["title"]
    )
    assert said["Audit"][0].endswith("epsilon is at least 0.10 (confidence 95 %), and promised to be at most 3.00.")
    place.write_text(json.dumps(audit | step | {"name": "one step", "step": step, "said_by": []}))
    assert len(read(folder).audits) == 1, "an audit of the step alone is shown once"


def test_one_run_of_train_makes_a_page_too(tmp_path: Path) -> None:
    from reticent.experiments.recipe import Recipe
    from reticent.experiments.training import train

    train(Recipe(data="digits", epsilon=3.0, epochs=1.0, seed=0), tmp_path / "run")
    page = write_page(tmp_path / "run").read_text()
    assert "DP-SGD" in page
    assert len(embedded(page, "statements")) == 1


def test_a_plain_run_is_called_what_it_is(tmp_path: Path) -> None:
    from reticent.experiments.plain import train_plain
    from reticent.experiments.recipe import Recipe

    train_plain(Recipe(data="digits", epochs=1.0, seed=0), tmp_path)
    (run,) = read(tmp_path).runs
    assert (run.label, run.kind) == ("plain", "plain")
    assert "Without privacy" in write_page(tmp_path).read_text()


def test_a_comparison_of_which_all_failed_makes_a_page(tmp_path: Path, records: Any) -> None:
    (tmp_path / "results.jsonl").write_text(json.dumps(records.failed("dpsgd", 3.0, 0, "no luck")) + "\n")
    assert "no luck" in write_page(tmp_path).read_text()


def test_results_without_a_test_split_make_a_page(tmp_path: Path, records: Any) -> None:
    run = records.run("dpsgd", 3.0, 0, 0.5, accuracy_on="no test split", classes=None) | {"accuracy": None}
    (tmp_path / "results.jsonl").write_text(json.dumps(run) + "\n")
    assert "not measured" in render(read(tmp_path))


def test_folders_that_hold_nothing_or_nonsense_are_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no results"):
        read(tmp_path)
    (tmp_path / "results.jsonl").write_text("{nonsense")
    with pytest.raises(DataError, match="line 1 is not JSON"):
        read(tmp_path)
    (tmp_path / "results.jsonl").write_text("")
    with pytest.raises(DataError, match="no run to be shown"):
        write_page(tmp_path)


PLACES = ("results.jsonl", "attacks.json", "audit.json", "runs/dpsgd-eps3-seed0/attack/attack.json")
STRANGE = ("[]", "[1]", "[[]]", "null", "7", '{"attack": "x"}', '{"verdict": 3}', "\x00", '{"attacks": [{}]}')


@pytest.mark.parametrize("name", [*PLACES, "runs/dpsgd-eps3-seed0/private-diagnostics.jsonl"])
@pytest.mark.parametrize("text", STRANGE)
def test_strange_files_make_a_page_or_an_error_of_ours(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    said = name
    try:
        write_page(folder, private=True)
    except DataError as error:
        said = str(error)
    assert name in said


@pytest.mark.parametrize(
    "change",
    [
        {"auc": "high"},
        {"members": 3.5},
        {"fpr": [0.0]},
        {"fpr": [None], "tpr": [1.0]},
        {"heldout": []},
        {"at_low_rates": [{"fpr": 0.01}]},
        {"histogram": {"edges": [0.0], "members": [1], "outsiders": [1]}},
    ],
    ids=str,
)
def test_an_attack_with_a_wrong_field_is_an_error_of_ours(folder: Path, records: Any, change: dict[str, Any]) -> None:
    (folder / "attacks.json").write_text(json.dumps(records.attack("mine", 0.1, 0) | change))
    with pytest.raises(DataError, match=r"attacks\.json"):
        write_page(folder)
