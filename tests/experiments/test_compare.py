"""A comparison: which runs it takes, and that one that fails does not stop the others."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from reticent.errors import ResumeError, SettingError, UnknownName
from reticent.experiments.compare import Compared, Comparison, read_comparison
from reticent.experiments.quoting import of_dataset
from reticent.experiments.record import commit


def planned(**changes: Any) -> Comparison:
    settings: dict[str, Any] = {
        "settings": {"data": "digits"},
        "variants": {"auto_s": {}},
        "epsilons": (1.0, 3.0),
        "seeds": (0, 1),
    }
    return Comparison(**(settings | changes))


# -- which runs ------------------------------------------------------------------------------------------------------


def test_baselines_are_always_there_at_every_budget_and_seed() -> None:
    names = {job.name for job in planned().jobs()}
    wanted = {
        f"{label}-eps{epsilon}-seed{seed}" for label in ("dpsgd", "auto_s") for epsilon in (1, 3) for seed in (0, 1)
    }
    assert names == wanted | {"plain-seed0", "plain-seed1"}
    assert {job.name for job in planned(variants={"dpsgd": {}, "auto_s": {}}).jobs()} == names


def test_all_methods_get_the_same_budget_data_and_network() -> None:
    recipes = [
        job.recipe.filled() for job in planned(variants={"auto_s": {}, "dpadam": {}}).jobs() if job.kind != "plain"
    ]
    for epsilon in (1.0, 3.0):
        same = [recipe for recipe in recipes if recipe.epsilon == epsilon]
        assert len(same) == 3 * 2
        assert len({(recipe.data, recipe.model, recipe.epochs, recipe.delta) for recipe in same}) == 1


def test_the_first_seed_of_everything_comes_first() -> None:
    seeds = [job.recipe.seed for job in planned().jobs()]
    assert seeds == sorted(seeds, key=lambda seed: seed or 0)


def test_a_costly_method_stands_beside_a_dpsgd_that_may_compute_as_many_gradients() -> None:
    jobs = {job.label: job for job in planned(costs={"auto_s": 2.5}).jobs() if job.kind != "plain"}
    assert set(jobs) == {"dpsgd", "dpsgd-2.5x-gradients", "auto_s"}
    usual, larger = of_dataset(jobs["dpsgd"].recipe)[0], jobs["dpsgd-2.5x-gradients"].recipe.filled()
    assert larger.batch_size == pytest.approx(2.5 * usual.batch_size)  # type: ignore[operator]
    assert larger.epochs == pytest.approx(2.5 * usual.epochs)  # type: ignore[operator]
    assert larger.epsilon == usual.epsilon


def test_what_promises_no_epsilon_gets_no_budget() -> None:
    names = {job.name: job.recipe.epsilon for job in planned(variants={"pd_sgd": {}, "selena": {}}).jobs()}
    assert names["pd_sgd-seed0"] is names["selena-seed1"] is None
    assert not any("pd_sgd-eps" in name or "selena-eps" in name for name in names)


def test_dpis_says_its_cost_itself() -> None:
    """It looks at about `spread` times as many gradients as it draws examples."""
    labels = {job.label for job in planned(variants={"dpis": {}}).jobs()}
    assert labels == {"plain", "dpsgd", "dpsgd-5x-gradients", "dpis"}
    labels = {job.label for job in planned(variants={"dpis": {"spread": 3.0}}).jobs()}
    assert "dpsgd-3x-gradients" in labels


def test_variants_of_one_method_are_told_apart(tmp_path: Path) -> None:
    config = tmp_path / "compare.toml"
    config.write_text(
        'data = "digits"\nmethods = ["dpsur"]\nepsilons = [2]\nseeds = 3\nlr = 0.5\n'
        '[variant.dpsur-smooth]\nmethod = "dpsur"\ntest = "smooth"\nlr = 0.25\n'
    )
    jobs = {job.label: job.recipe for job in read_comparison(config, {"dpsur.lr": "0.75"}).jobs()}
    assert set(jobs) == {"plain", "dpsgd", "dpsur", "dpsur-smooth"}
    assert jobs["dpsur-smooth"].options == {"test": "smooth"}
    assert [jobs[label].lr for label in ("dpsgd", "dpsur", "dpsur-smooth")] == [0.5, 0.75, 0.25]
    assert all(recipe.seed == 2 for recipe in jobs.values())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"variants": {"dpsgdd": {}}}, "did you mean 'dpsgd'"),
        ({"settings": {"data": "digts"}}, "did you mean 'digits'"),
        ({"epsilons": ()}, "at least one epsilon"),
        ({"costs": {"dpis": 2.0}}, "not among the methods"),
    ],
)
def test_mistakes_are_told_before_any_run(changes: dict[str, Any], says: str) -> None:
    with pytest.raises((SettingError, UnknownName), match=re.escape(says)):
        planned(**changes).jobs()


def test_a_setting_for_a_method_that_is_not_compared_is_refused() -> None:
    with pytest.raises(SettingError, match="not among the methods"):
        read_comparison(None, {"methods": ["auto_s"], "dpsur.lr": "1"})


# -- what comes of them ----------------------------------------------------------------------------------------------


def test_one_failed_run_is_reported_and_the_others_finish(compared: tuple[Path, Compared, Any]) -> None:
    out, answer, seen = compared
    assert set(answer.failed) == {"hopeless-eps3-seed0", "hopeless-eps3-seed1"}
    assert "max_grad_norm must be above 0" in answer.failed["hopeless-eps3-seed0"]
    assert sorted(seen.names("ended")) == sorted(seen.names("began"))
    assert len(answer.runs) == answer.to_json()["runs"] == 8
    lines = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert [line["status"] for line in lines].count("done") == 6
    assert len({line["run"] for line in lines}) == 8


def test_a_record_says_everything_about_its_run(compared: tuple[Path, Compared, Any]) -> None:
    out, _, _ = compared
    lines = {line["run"]: line for line in map(json.loads, (out / "results.jsonl").read_text().splitlines())}
    record = lines["auto_s-eps3-seed1"]
    assert record["seed"] == record["recipe"]["seed"] == 1
    assert record["epsilon"] == record["guarantee"]["epsilon"] <= 3.0
    assert record["guarantee"]["status"] == "proved"
    assert record["wall_seconds"] > 0 < record["cpu_seconds"]
    assert record["versions"]["torch"]
    assert record["commit"] == commit()
    assert record["threads"] == 1
    assert record["stages"].startswith("Method(name='auto_s'")
    assert "claimed_epsilon" in record
    plain = lines["plain-seed0"]
    assert plain["epsilon"] is None
    assert plain["guarantee"]["status"] == "none"


def test_class_accuracies_add_up_to_the_accuracy(compared: tuple[Path, Compared, Any]) -> None:
    out, _, _ = compared
    for record in map(json.loads, (out / "results.jsonl").read_text().splitlines()):
        if record["status"] == "done":
            examples = sum(entry["examples"] for entry in record["classes"])
            right = sum(entry["accuracy"] * entry["examples"] for entry in record["classes"])
            assert right / examples == pytest.approx(record["accuracy"])


def test_epsilon_over_rounds_rises_and_ends_at_the_guarantee(compared: tuple[Path, Compared, Any]) -> None:
    out, _, _ = compared
    for record in map(json.loads, (out / "results.jsonl").read_text().splitlines()):
        if record["status"] == "done" and record["kind"] == "private":
            rounds, epsilons = zip(*record["epsilon_by_round"], strict=True)
            assert rounds[-1] == record["rounds"]
            assert list(epsilons) == sorted(epsilons)
            assert epsilons[-1] == pytest.approx(record["epsilon"], abs=1e-6)


def test_the_summary_is_the_mean_of_the_records(compared: tuple[Path, Compared, Any]) -> None:
    out, answer, _ = compared
    rows = list(csv.DictReader((out / "summary.csv").read_text().splitlines()))
    assert [row["label"] for row in rows] == ["plain", "dpsgd", "auto_s", "hopeless"]
    records = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    mine = [record["accuracy"] for record in records if record["label"] == "auto_s"]
    row = next(row for row in rows if row["label"] == "auto_s")
    assert float(row["accuracy_mean"]) == pytest.approx(sum(mine) / 2)
    assert (float(row["accuracy_low"]), float(row["accuracy_high"])) == (min(mine), max(mine))
    assert rows[-1]["accuracy_mean"] == ""
    assert (out / "report.html").stat().st_size < 3_000_000
    assert [entry.label for entry in answer.summary] == [row["label"] for row in rows]


def test_plain_training_beats_what_pays_for_privacy(compared: tuple[Path, Compared, Any]) -> None:
    _, answer, _ = compared
    reached = {row.label: row.accuracy.mean for row in answer.summary if row.accuracy}
    assert reached["plain"] > max(reached["dpsgd"], reached["auto_s"])


def test_other_settings_in_the_same_folder_are_refused_by_name(compared: tuple[Path, Compared, Any], seen: Any) -> None:
    from reticent.experiments.compare import compare

    out, _, _ = compared
    other = planned(settings={"data": "digits", "epochs": 3.0}, epsilons=(3.0,))
    with pytest.raises(ResumeError, match=re.escape("epochs = 1.0, asked for is 3.0")):
        compare(other, out, processes=1, watcher=seen)
    assert seen.events == []


def test_a_clip_norm_for_all_is_not_for_methods_without_one() -> None:
    plan = Comparison(
        settings={"data": "digits", "max_grad_norm": 0.5}, variants={"auto_s": {}}, epsilons=(1.0,), seeds=(0,)
    )
    given = {job.label: job.recipe.max_grad_norm for job in plan.jobs()}
    assert given["auto_s"] is None
    assert given["dpsgd"] == 0.5
