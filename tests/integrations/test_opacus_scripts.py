"""Opacus scripts and their copies with the import changed: both run, and say the same epsilon."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parent / "scripts"


def changed(text: str) -> str:
    return text.replace("from opacus", "from reticent.integrations.opacus")


def run(text: str, name: str, **settings: Any) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": f"script_{name}"}
    exec(compile(text, name, "exec", dont_inherit=True), names)
    found: dict[str, Any] = names["main"](**settings)
    return found


def as_opacus(name: str, **settings: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        pytest.importorskip("opacus", reason="opacus is not installed")
        return run((SCRIPTS / f"{name}.py").read_text(), name, **settings)


def test_mnist_and_its_copy_with_one_line_changed() -> None:
    text = (SCRIPTS / "mnist.py").read_text()
    before, after = text.splitlines(), changed(text).splitlines()
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1
    ours = run(changed(text), "mnist", words=["--epochs", "8", "--lr", "2"])
    theirs = as_opacus("mnist", words=["--epochs", "8", "--lr", "2"])
    assert ours["epsilon"] == pytest.approx(theirs["epsilon"], abs=1e-6)
    assert ours["names"] == theirs["names"]
    assert min(ours["accuracy"], theirs["accuracy"]) > 0.5


@pytest.mark.parametrize(
    ("name", "expected"),
    [("cifar", {"lr": 0.01 * 0.9**2}), ("imdb", {}), ("char_lstm", {"steps": 5})],
)
def test_scripts_run_with_their_imports_changed(name: str, expected: dict[str, float]) -> None:
    found = run(changed((SCRIPTS / f"{name}.py").read_text()), name)
    assert 0 < found["epsilon"] < 20
    assert found == found | {key: pytest.approx(value) for key, value in expected.items()}
    assert found.get("loaded", found["epsilon"]) == found["epsilon"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cifar", "imdb", "char_lstm"])
def test_the_same_scripts_with_opacus(name: str) -> None:
    ours, theirs = run(changed((SCRIPTS / f"{name}.py").read_text()), name), as_opacus(name)
    assert ours["epsilon"] == pytest.approx(theirs["epsilon"], rel=0.02)  # of "prv" and of a search for noise
