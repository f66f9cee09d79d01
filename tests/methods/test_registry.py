"""A method is one file: what its ABOUT says is all that lists, help, commands and pages need, also from elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from reticent import catalogue, methods
from reticent.errors import SettingError
from reticent.methods import registry

TOY = '''"""A toy: DP-SGD that halves every step."""
from dataclasses import dataclass, replace

import reticent as rt
from reticent.about import About


@dataclass(frozen=True)
class Half:
    def apply(self, released, settings):
        return released / (2 * settings.batch_size)


def dpsgd_half(*, noise_multiplier=None, max_grad_norm=1.0, halves=1):
    base = rt.methods.dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    return replace(base, name="dpsgd_half", direction=Half())


ABOUT = About(
    name="dpsgd_half", make=dpsgd_half, title="Half-hearted SGD", paper="nobody", kind="baseline",
    changes="direction: half of it", guarantee="proved, as DP-SGD", options={"halves": "of what"}, preset={"lr": 2.0},
)
'''

SESSION = """
import json, sys
from typer.testing import CliRunner
from reticent.cli import app

def told(*words):
    done = CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)

mine, size = ["--method", "dpsgd_half"], ["--data-size", "1437", "--batch-size", "300", "--rounds", "3"]
out = sys.argv[1]
print(json.dumps({
    "methods": told("methods", "dpsgd_half"),
    "account": told("account", *mine, *size, "--noise-multiplier", "2", "--set", "halves=2"),
    "plan": told("plan", *mine, *size, "--epsilon", "3"),
    "train": told("train", "--data", "digits", *mine, "--epsilon", "3", "--epochs", "1", "--out", out + "/run"),
    "compare": told("compare", "--data", "digits", "--methods", "dpsgd_half", "--epsilons", "3", "--out", out + "/all",
                    "--set", "epochs=1"),
}))
"""


def install(folder: Path) -> None:
    """A wheel with the toy and its entry point, by the real installer."""
    info = "toy_method-0.1.dist-info"
    members = {
        "toy_method.py": TOY,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: toy-method\nVersion: 0.1\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[reticent.methods]\ndpsgd_half = toy_method\n",
    }
    record = "".join(f"{name},,\n" for name in [*members, f"{info}/RECORD"])
    wheel = folder / "toy_method-0.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**members, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"]
    subprocess.run([*command, str(folder / "site"), str(wheel)], check=True)


@pytest.mark.slow
def test_a_package_brings_a_method_and_nothing_else_is_written(tmp_path: Path) -> None:
    install(tmp_path)
    paths = os.pathsep.join([str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", SESSION, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (row,) = told["methods"]
    assert (row["title"], row["options"]["halves"]) == ("Half-hearted SGD", {"default": 1, "does": "of what"})
    assert told["account"]["status"] == "proved"
    assert told["plan"]["guarantee"]["epsilon"] <= 3.0
    assert told["train"]["recipe"]["method"] == "dpsgd_half"
    assert told["compare"]["failed"] == {}
    page = (tmp_path / "all" / "report.html").read_text()
    assert "Half-hearted SGD" in page


def test_every_option_is_described() -> None:
    for row in methods.listing():
        for option, about in row["options"].items():
            assert about["does"] != row["docs"], f"{row['name']} does not say what {option} does"


def test_makers_are_found_by_name() -> None:
    assert {name for name in methods.names() if callable(getattr(methods, name))} == set(methods.names())
    assert {"dpsur", "get", "plan"} <= set(dir(methods))
    with pytest.raises(AttributeError, match="no attribute"):
        _ = methods.dpsgdd


class Point:
    """An entry point, as importlib.metadata finds them."""

    def __init__(self, loaded: object):
        self.name, self.value, self._loaded = "mine", "mine:ABOUT", loaded

    def load(self) -> object:
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded


@pytest.mark.parametrize(
    ("loaded", "says"),
    [
        (ImportError("no such module"), "cannot be loaded: no such module"),
        ("not an About", "ABOUT must be an About"),
        (catalogue.find("dpsgd"), "two packages bring a method called dpsgd"),
    ],
)
def test_a_package_that_brings_something_else_is_named(
    loaded: object, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda group: [Point(loaded)])
    with pytest.raises(SettingError, match=says):
        registry.abouts.__wrapped__()
