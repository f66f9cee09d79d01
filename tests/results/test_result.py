"""Results: what is stored is read back, old files too, and what is not ours is refused in a sentence."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reticent.accounting import Guarantee
from reticent.errors import DataError, ResumeError
from reticent.results import (
    VERSION,
    ClassAccuracy,
    Effort,
    LedgerFacts,
    Machine,
    PlainSettings,
    Result,
    read_record,
    read_result,
    read_results,
    to_line,
)
from reticent.results.sealing import unseal

COLLECTED = Path(__file__).parents[2] / "results"
FULL = Result(
    run="dpsur-eps3-seed0",
    label="dpsur",
    recipe={"data": "digits", "model": "linear", "method": "dpsur", "epsilon": 3.0, "seed": 0, "options": {}},
    accuracy=0.9,
    accuracy_on="80/20",
    guarantee=Guarantee("proved", 2.9, 1e-5, covers=("all",), as_claimed={"epsilon": 2.1, "refuted": True}),
    rounds=10,
    kept=5,
    noise_multiplier=1.5,
    examples=1437,
    classes=(ClassAccuracy(number=0, examples=30, accuracy=0.9),),
    stages="Method()",
    ledger=LedgerFacts(entries=10, sha256="0" * 64),
    epsilon_by_round=((1, 0.5), (10, 2.9)),
    effort=Effort(wall_seconds=1.5, cpu_seconds=1.0, resumed=True, warnings=("once",), finished="2026-01-01"),
    machine=Machine(name="Linux", threads=1, commit="abc", versions={"torch": "2", "dp-accounting": None}),
)
PLAIN = replace(FULL, run="plain-seed0", label="plain", kind="plain", optimizer=PlainSettings(name="adam", lr=0.1))
FAILED = Result(run="a-seed0", label="a", recipe={"data": "digits", "method": "a"}, status="failed", error="no luck")


def through_json(data: dict[str, object]) -> Any:
    return json.loads(json.dumps(data, allow_nan=False))


@pytest.mark.parametrize("result", [FULL, PLAIN, FAILED], ids=lambda result: result.run)
def test_the_long_form_is_read_back(result: Result) -> None:
    assert Result.from_json(through_json(result.to_json())) == result


@pytest.mark.parametrize("plain", [False, True])
def test_the_short_form_is_read_back(plain: bool) -> None:
    told = Result(
        run="a",
        label="plain" if plain else "dpsur",
        kind="plain" if plain else "private",
        recipe=FULL.recipe,
        accuracy=0.9,
        guarantee=Guarantee("none", math.inf, 1e-5),
        rounds=3,
        kept=3,
        seconds=1.0,
        out="runs/a",
        optimizer=PLAIN.optimizer if plain else None,
    )
    assert Result.from_json(through_json(told.answer()), name="a") == told


def test_what_follows_from_the_parts_is_told_once() -> None:
    assert (FULL.data, FULL.model, FULL.method, FULL.seed, FULL.target_epsilon) == ("digits", "linear", "dpsur", 0, 3.0)
    assert (FULL.epsilon, FULL.delta, FULL.claimed_epsilon) == (2.9, 1e-5, 2.1)
    assert PLAIN.method == "plain"
    assert FAILED.epsilon is FAILED.delta is FAILED.cpu_seconds is None


# -- older and newer files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(COLLECTED.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_published_file_is_read(path: Path) -> None:
    if path.stem.endswith("-attacks"):
        return
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line, result in zip(lines, read_results(path), strict=True):
        told = through_json(result.to_json())
        promised, said = told.pop("guarantee"), line.pop("guarantee")
        attacked = {"attack": line["attack"]} if "attack" in line else {}  # how: beside the result, not of it
        assert {name: told[name] for name in line if name not in attacked} | attacked == line
        if said is not None:
            same = said.keys() - {"adjacency"}  # which was said in other words
            assert {name: promised[name] for name in same} == {name: said[name] for name in same}


def test_a_run_folder_that_is_older_than_versions_is_read(tmp_path: Path) -> None:
    old = FULL.answer()
    del old["version"], old["accuracy_on"]
    (tmp_path / "result.json").write_text(json.dumps(old))
    found = read_result(tmp_path)
    assert (found.run, found.label, found.accuracy, found.accuracy_on) == (tmp_path.name, "dpsur", 0.9, "")


def test_a_newer_version_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text(json.dumps(FULL.to_json() | {"version": VERSION + 1, "colour": "blue"}))
    with pytest.raises(DataError, match=r"version 2, and this .* up to version 1: .*pip install --upgrade"):
        read_record(tmp_path)


@pytest.mark.parametrize("part", [None, "guarantee"])
def test_fields_that_nobody_knows_are_refused_by_name(part: str | None) -> None:
    data = through_json(FULL.to_json())
    (data if part is None else data[part])["colour"] = "blue"
    with pytest.raises(DataError, match=r"colour is not known here. If a newer Reticent"):
        Result.from_json(data, "record.json")


# -- damaged and foreign files -----------------------------------------------------------------------------------------

TEXTS = ["", "{", "[]", "3", "null", '"text"', '{"run": "a"}', "[" * 100_000, "\ud800", '{"recipe": {}}']


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:12] or "nothing")
def test_what_is_no_result_is_refused(text: str, tmp_path: Path) -> None:
    for name in ("result.json", "record.json", "results.jsonl"):
        (tmp_path / name).write_bytes((text or " ").encode(errors="surrogatepass"))
    with pytest.raises(DataError, match=r"result\.json"):
        read_result(tmp_path)
    with pytest.raises(DataError, match=r"record\.json"):
        read_record(tmp_path)
    if text:
        with pytest.raises(DataError, match=r"results\.jsonl"):
            read_results(tmp_path / "results.jsonl")


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "result.json").mkdir()
    with pytest.raises(DataError, match="cannot read"):
        read_result(tmp_path)


def test_a_folder_without_a_result_is_no_finished_run(tmp_path: Path) -> None:
    with pytest.raises(ResumeError, match="no finished run"):
        read_result(tmp_path)
    assert read_record(tmp_path) is None


nonsense = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.just([]),
    st.just({}),
    st.just([[1]]),
    st.just([{}]),
)


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_field_of_the_wrong_kind_is_refused_or_understood(data: st.DataObject) -> None:
    """Never anything but a result or an error of ours, and what is understood can be written again."""
    told = through_json(PLAIN.to_json())
    place = data.draw(st.sampled_from([told, told["recipe"], told["guarantee"], told["classes"][0], told["optimizer"]]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(nonsense)
    try:
        found = Result.from_json(told)
    except DataError:
        return
    assert Result.from_json(unseal(json.loads(to_line(found)), "a line")) == found


@pytest.mark.parametrize("route", ["per_accepted", "best_trial"])
def test_how_long_a_run_took_is_not_told_where_it_tells_how_many_attempts_there_were(route: str) -> None:
    hidden = Guarantee("proved", 2.9, 1e-5, route=route)
    for guarantee, told in ((hidden, False), (replace(hidden, seeded=True), True), (replace(hidden, route=""), True)):
        result = replace(FULL, guarantee=guarantee, seconds=3.25, effort=Effort(wall_seconds=4.25, cpu_seconds=5.25))
        written = json.dumps([result.stored(), result.answer(), result.to_json()])
        assert [number in written for number in ("3.25", "4.25", "5.25")] == [told] * 3
