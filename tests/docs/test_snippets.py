"""Every Python example of the pages runs on tiny data, and every command line is one that the program understands.

A block fenced as `python` is run, in the order of its page; a fragment that cannot run by itself is fenced as `py`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import typer
from torch import Tensor

from reticent import data, methods
from reticent.cli import app
from reticent.experiments.recipe import check, parse_changes, read_recipe

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LONG = {"audit.md": pytest.mark.slow}
"""`make docs` executes it as a notebook, on every change."""
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a language, each moved down to the line it has in the page."""
    text = page.read_text()
    return [
        "\n" * text.count("\n", 0, found.start(2)) + found[2] for found in FENCE.finditer(text) if found[1] == language
    ]


def pages_with(language: str) -> pytest.MarkDecorator:
    found = [pytest.param(page, marks=LONG.get(page.name, ())) for page in PAGES if blocks(page, language)]
    return pytest.mark.parametrize("page", found, ids=lambda page: str(page.relative_to(ROOT)))


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder to work in, and a few examples of the right shape for every dataset."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RETICENT_CACHE", str(tmp_path / "cache"))
    digits = data.load("digits")
    shapes = {"mnist": (1, 28, 28), "fashion-mnist": (1, 28, 28), "cifar10": (3, 32, 32)}

    def load(name: str, **_folder: object) -> data.Dataset:
        few = digits.train.take(list(range(300)))
        if name in shapes:
            few = data.Examples(torch.rand(20, *shapes[name]), torch.arange(20) % 10)
        return data.Dataset(name, few, few, 10, "made up")

    monkeypatch.setattr(data, "load", load)


@pages_with("python")
@pytest.mark.usefixtures("tiny")
def test_python_runs(page: Path, blobs: tuple[Tensor, Tensor]) -> None:
    """`model`, `new_model`, `x` and `y` are the reader's own in all pages."""
    names = {"x": blobs[0], "y": blobs[1], "new_model": lambda: torch.nn.Linear(4, 2), "__name__": "page"}
    names["model"] = torch.nn.Linear(4, 2)
    for text in blocks(page, "python"):
        exec(compile(text, str(page), "exec", dont_inherit=True), names)


def commands(page: Path) -> Iterator[list[str]]:
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            if words := shlex.split(line, comments=True):
                yield words[: words.index(">")] if ">" in words else words


@pages_with("sh")
def test_commands_are_understood(page: Path) -> None:
    for program, *words in commands(page):
        if program != "reticent":
            continue
        command = typer.main.get_command(app)
        while hasattr(command, "commands"):
            assert words[0] in command.commands, f"there is no command {words[0]}"
            command, words = command.commands[words[0]], words[1:]
        given = command.make_context(command.name, words).params
        if command.name == "train":
            check_train(given)


def check_train(given: dict[str, object]) -> None:
    """The settings of a train command fit its dataset and its method."""
    apart = {"set_", "config", "out", "resume", "tensorboard", "as_json", "dataset", "ledger"}
    flags = {name: value for name, value in given.items() if name not in apart}
    recipe = read_recipe(None, parse_changes(list(given["set_"] or ())) | flags).filled()  # type: ignore[call-overload]
    check(recipe)
    options = {"noise_multiplier": recipe.noise_multiplier, "max_grad_norm": recipe.max_grad_norm} | recipe.options
    if recipe.method in methods.names():
        methods.get(recipe.method, **{name: value for name, value in options.items() if value is not None})
