"""A folder of results such as `reticent compare` leaves, with every kind of thing a page may have to show."""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from tools.browser import installed, opened

from reticent.accounting import Guarantee
from reticent.results import Result

EVIL = '</script><script>window.hacked = true</script> & <b>"quoted"</b>'


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real browser without a window."""
    pytest.importorskip("selenium.webdriver", reason="no selenium: pip install 'reticent[dev]'")
    if installed() is None:
        pytest.skip("no browser: install Debian's chromium and chromium-driver")
    with opened(tmp_path_factory.mktemp("profile")) as found:
        yield found


def guarantee(epsilon: float | None, claimed: float | None = None, **rest: Any) -> dict[str, Any]:
    if epsilon is None:
        return Guarantee("none", math.inf, 1e-5, why="the test has no noise").to_json()
    return Guarantee(
        "proved",
        epsilon - 2e-5,
        1e-5,
        accountant="pld",
        pld=epsilon - 2e-5,
        rdp=epsilon * 1.1,
        covers=("every release of training",),
        excludes=("floating-point and timing side channels",),
        assumptions=("the number of examples is public",),
        seeded=True,
        as_claimed=None if claimed is None else {"epsilon": claimed} | rest,
    ).to_json()


def run(label: str, epsilon: float | None, seed: int, accuracy: float, **changes: Any) -> dict[str, Any]:
    """The record of one run that got to its end."""
    method = label.partition("-")[0]
    private = method != "plain"
    proved = None if method in ("plain", "pd_sgd") else epsilon
    rounds = 113
    chance = random.Random(f"{label}{seed}")
    return {
        "run": f"{label}-eps{epsilon:g}-seed{seed}" if epsilon is not None else f"{label}-seed{seed}",
        "label": label,
        "kind": "private" if private else "plain",
        "status": "done",
        "error": None,
        "examples": 1437,
        "accuracy": accuracy,
        "accuracy_on": "fixed public 80/20 split, seed 0",
        "classes": [
            {"class": number, "examples": 30 + number, "accuracy": min(1.0, accuracy + chance.uniform(-0.08, 0.06))}
            for number in range(10)
        ],
        "guarantee": guarantee(proved),
        "rounds": rounds,
        "kept": rounds // 2 if method == "dpsur" else rounds,
        "noise_multiplier": 2.8 if private else 0.0,
        "optimizer": None if private else {"name": "adam", "lr": 0.064},
        "stages": f"Method(name={method!r}, noise_multiplier=2.8)" if private else None,
        "recipe": {
            "data": "digits",
            "model": "linear",
            "method": method if private else "dpsgd",
            "epsilon": epsilon,
            "batch_size": 256.0,
            "seed": seed,
        },
        "ledger": {"entries": rounds, "sha256": "0" * 64} if private else None,
        "epsilon_by_round": [[n, proved * math.sqrt(n / rounds)] for n in range(1, rounds + 1, 14)] if proved else None,
        "wall_seconds": 2.5,
        "cpu_seconds": 1.2 + chance.random(),
        "resumed": False,
        "warnings": [],
        "finished": "2026-01-01T12:00:00+0000",
        "versions": {"reticent": "0.1.0", "torch": "2.13.0"},
        "commit": "abc123",
        "machine": "Linux x86_64, 2 cores",
        "threads": 1,
    } | changes


def failed(label: str, epsilon: float, seed: int, error: str) -> dict[str, Any]:
    """The record of a run that did not."""
    names = ("run", "label", "kind", "recipe")
    whole = run(label, epsilon, seed, 0.0)
    nothing = {"status": "failed", "error": error, "accuracy": None, "guarantee": None}
    return {name: whole[name] for name in names} | nothing


def attack(name: str, mu: float, seed: int, **changes: Any) -> dict[str, Any]:
    """The entry of one attack: scores of members are `mu` higher."""
    fpr = np.linspace(0, 1, 2001)
    tpr = ndtr(ndtri(fpr) + mu)
    return {
        "attack": name,
        "fpr": fpr.tolist(),
        "tpr": tpr.tolist(),
        "auc": float(ndtr(mu / math.sqrt(2))),
        "auc_low": float(ndtr(mu / math.sqrt(2))) - 0.02,
        "auc_high": float(ndtr(mu / math.sqrt(2))) + 0.02,
        "members": 2000,
        "outsiders": 2000,
        "heldout": {"balanced": float(ndtr(mu / 2)), "threshold": 0.0, "chosen": "heldout", "advantage": 0.1},
        "at_low_rates": [{"fpr": 0.01, "tpr": 0.02, "low": 0.015, "high": 0.03, "stable": True}],
        "refused": ["TPR at 0.10% FPR needs at least 1000 non-members"],
        "histogram": bars(mu),
    } | changes


def bars(mu: float) -> dict[str, Any]:
    """Scores of 2000 members and 2000 others, `mu` apart, as an attack stores them."""
    edges = np.linspace(-4, 4 + mu, 31)
    counts = (np.rint(2000 * np.diff(ndtr(edges - shift))).astype(int).tolist() for shift in (mu, 0.0))
    return dict(zip(("edges", "members", "outsiders"), (edges.tolist(), *counts), strict=True))


def everything() -> list[dict[str, Any]]:
    """Four labels at two budgets with three seeds, a method without any guarantee, and a failure."""
    reached = {"dpsgd": 0.82, "dpsur": 0.8, "dpsur-smooth": 0.84, "auto_s": 0.88}
    runs = [run("plain", None, seed, 0.97 + 0.002 * seed) for seed in range(3)]
    runs += [run("pd_sgd", None, seed, 0.91 + 0.004 * seed) for seed in range(3)]
    for seed in range(3):
        for epsilon, more in ((1.0, 0.0), (3.0, 0.07)):
            for label, accuracy in reached.items():
                shaken = accuracy + more + 0.01 * math.sin(7 * seed + len(label))
                claimed = epsilon * 0.7 if method_of(label) == "dpsur" else None
                runs.append(run(label, epsilon, seed, shaken, guarantee=guarantee(epsilon, claimed)))
    return [*runs, failed("sa_dpsgd", 1.0, 0, f"no noise reaches epsilon 1: {EVIL}")]


def results(runs: list[dict[str, Any]]) -> list[Result]:
    """The records as they are read."""
    return [Result.from_json(run) for run in runs]


def method_of(label: str) -> str:
    return label.partition("-")[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Results with attacks and audits."""
    return write(tmp_path / "out")


def write(out: Path) -> Path:
    """Write all of it into a folder."""
    place = out / "runs" / "dpsgd-eps3-seed0"
    place.mkdir(parents=True)
    (out / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in everything()))
    attacks = [attack("loss threshold", 0.3, 0), attack("LiRA online", 0.8, 1)]
    (place / "attacks.json").write_text(json.dumps(attacks))
    (out / "attacks.json").write_text(json.dumps([attack("LiRA online", 1.5, 2, run="plain-seed0")]))
    audit = {"name": "step audit", "verdict": "consistent", "lower": 1.4, "upper": 3.0, "confidence": 0.95}
    broken = audit | {"run": "auto_s-eps1-seed0", "verdict": "contradicted", "lower": 1.6, "upper": 1.0}
    (place / "audit.json").write_text(json.dumps(audit))
    (out / "audit.json").write_text(json.dumps([broken]))
    lines = [{"private": True, "round": n, "drawn": 250, "bounded": 250 - n, "norm_sum": 9.0} for n in range(50)]
    (place / "private-diagnostics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return out


@pytest.fixture
def records() -> ModuleType:
    """The makers of records, for tests that want their own."""
    return sys.modules[__name__]
