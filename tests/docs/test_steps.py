"""The choice of steps: the best on examples set aside, one for a method, and a mark where it is at the end."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "results" / "steps.py"


@pytest.fixture(scope="module")
def steps() -> ModuleType:
    spec = importlib.util.spec_from_file_location("steps", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def record(out: Path, table: str, label: str, step: float, accuracy: float) -> None:
    folder = out / f"steps-{table}" / "runs" / f"{label}-{step}"
    folder.mkdir(parents=True)
    told = {"status": "done", "label": label, "target_epsilon": 1.0, "accuracy": accuracy, "recipe": {"lr": step}}
    (folder / "record.json").write_text(json.dumps(told))


def test_the_best_step_is_chosen_and_one_at_the_end_is_marked(steps: ModuleType, tmp_path: Path) -> None:
    for step, digits, clothes, network in ((1.0, 0.90, 0.80, 0.5), (2.0, 0.95, 0.79, 0.6), (4.0, 0.94, 0.70, 0.7)):
        record(tmp_path, "linear", "mnist-dpsgd", step, digits)
        record(tmp_path, "linear", "fashion-mnist-dpsgd", step, clothes)
        record(tmp_path, "networks", "mnist-hf-dpsgd", step, network)
    found = steps.read(tmp_path)
    best = {row: steps.chosen(scores) for row, scores in (found | steps.together(found)).items()}
    assert {row: one["lr"] for row, one in best.items()} == {
        "mnist-dpsgd-eps1": 2.0,
        "fashion-mnist-dpsgd-eps1": 1.0,
        "mnist-hf-dpsgd-eps1": 4.0,
        "linear-dpsgd": 2.0,
    }
    assert best["mnist-hf-dpsgd-eps1"]["at_the_end"]
    assert not best["linear-dpsgd"]["at_the_end"]
    assert best["linear-dpsgd"]["accuracy"] == 87.0
