"""One charge: `account`, `plan`, a real run and its ledger name the same epsilon, to the last bit, for every method."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reticent import catalogue, methods
from reticent.accounting import Ledger, RenyiFilter, price
from reticent.cli import app
from reticent.experiments.normalising import charges
from reticent.experiments.recipe import read_recipe
from reticent.experiments.training import examples, train

DIGITS = len(examples(read_recipe(None, {"data": "digits"})).train)


@dataclass(frozen=True)
class Case:
    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    batch_size: float = 211  # 1437 / 211 is no whole number, nor is any of the others
    epochs: float = 1.3
    epsilon: float = 3.0

    def __str__(self) -> str:
        return "-".join([self.method, *(f"{name}={value}" for name, value in self.settings.items())])


CASES = [
    *(Case(name) for name in methods.names() if not catalogue.promises_nothing(name)),
    *(Case(name, {"validation": 237}, 199.5, 0.9, 2.0) for name in ("dpsgd", "dpsur", "sa_dpsgd", "dpis")),
    *(Case("noise_decay", {"schedule": s}, 97, 12.4) for s in ("time", "exponential", "step", "polynomial")),
    Case("noise_decay", {"schedule": "step", "period": 2, "k": 0.5}, 130.25, 7.7, 2.0),
    Case("dpsur", {"test": "smooth", "accept_low": 0.3}),
    Case("dpsur", {"seen_attempts": True}),
    Case("dpsur", {"after": 4, "beta": 0.0}),
    Case("dpsur", {"hidden_attempts": True, "validation_noise": 0.8, "beta": 0.0}),
    Case("dpsur", {"validation_batch_size": 50, "validation_noise": 3.0, "beta": -0.5}),
    Case("sa_dpsgd", {"holdout": 200}),
    Case("sa_dpsgd", {"holdout": 111, "hidden_attempts": True, "max_rejections": 3}),
    Case("sa_dpsgd", {"validation_noise": 5.0, "validation_batch_size": 64}),
    Case("dpis", {"adaptive_clip": True, "norm_noise": 0.05}),
    Case("dpis", {"norms": "refresh", "phase": 0.5}),
    Case("dpagd", {"splits": 10, "choices": 5}, DIGITS),
    Case("dpsgd", {"centre": 40.0}),
    Case("dpsgd", {"whiten": 9.0}),
    Case("dpsgd", {"statistics_noise": 8.0, "model": "cnn"}),
    Case("auto_s", {"stability": 0.1, "statistics_noise": 6.0, "centre": 50.0, "model": "cnn"}),
]


def ask(command: str, case: Case, options: dict[str, Any], noise: float | None, *, budget: bool) -> dict[str, Any]:
    """What the command line answers without any data."""
    words = ["--method", case.method, "--data-size", DIGITS, "--batch-size", case.batch_size, "--epochs", case.epochs]
    words += ["--epsilon", case.epsilon] if budget else []
    words += ["--noise-multiplier", repr(noise)] if noise is not None else []
    words += [part for name, value in (options | case.settings).items() for part in ("--set", f"{name}={value}")]
    done = CliRunner().invoke(app, [command, *map(str, words), "--json"], catch_exceptions=False)
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_epsilon_whoever_is_asked(case: Case, tmp_path: Path) -> None:
    shared = {"data": "digits", "method": case.method, "epsilon": case.epsilon, "seed": 0}
    recipe = read_recipe(None, shared | {"batch_size": case.batch_size, "epochs": case.epochs} | case.settings)
    answer = train(recipe, tmp_path).answer()
    options = recipe.filled().options  # those of the preset, too, which nobody tells the other two
    guarantee = answer["guarantee"]
    planned = ask("plan", case, options, None, budget=True)
    adaptive = guarantee["route"] == "filter"
    noise = None if adaptive else planned["noise_multiplier"]
    account = ask("account", case, options, noise, budget=adaptive)

    assert account["epsilon"] == planned["guarantee"]["epsilon"] == guarantee["epsilon"] <= case.epsilon
    assert account["delta"] == planned["guarantee"]["delta"] == guarantee["delta"]
    assert account["route"] == planned["guarantee"]["route"] == guarantee["route"]
    assert account["rounds"] == planned["rounds"]
    ledger = Ledger(tmp_path / "ledger.jsonl")
    if adaptive:
        allowed = RenyiFilter(guarantee["order"], guarantee["epsilon"], guarantee["delta"])
        for entry in ledger:
            allowed.spend(entry.event)
        return
    assert answer["rounds"] == planned["rounds"]
    assert answer["noise_multiplier"] == planned["noise_multiplier"]
    spent = ledger.tally()
    for event in charges(recipe):
        spent[event] = spent.get(event, 0) + 1
    assert price(spent, guarantee["delta"]).epsilon == guarantee["epsilon"]
