"""What the site is made of: tables of other files, every option, every page in the navigation, a word on each name."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from pathlib import Path

import pytest
from tools.site import links, notebooks, reference, tables

import reticent as rt

ROOT = Path(__file__).parents[2]


def test_the_page_of_fit_has_every_option_in_its_order() -> None:
    told = [row[0].strip("`") for row in tables.rows((ROOT / "docs" / "fit.md").read_text())[1:]]
    assert told == list(inspect.signature(rt.fit).parameters)


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_the_files_they_come_from(page: Path) -> None:
    assert tables.with_tables(page.read_text()) == page.read_text(), "run python -m tools.site.tables"


def test_every_page_is_in_the_navigation_once() -> None:
    listed = re.findall(r"([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed))
    folders = tuple(re.findall(r"- ([\w/]+/)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    missing = {place for page in links.pages() if not (place := links.place(page)).startswith(folders)} - set(listed)
    assert missing == set(), "a line for each in mkdocs.yml"


def test_one_version_is_told_everywhere() -> None:
    told = {
        "pyproject.toml": r'^version = "(.+)"$',
        "CITATION.cff": r"^version: (.+)$",
        "CHANGELOG.md": r"^## (\d[\d.]+)",
    }
    found = {name: re.search(line, (ROOT / name).read_text(), re.MULTILINE) for name, line in told.items()}
    assert {name: match[1] for name, match in found.items() if match} == dict.fromkeys(told, rt.__version__)


def test_every_public_name_says_what_it_is() -> None:
    silent = [name for name in reference.names() if not described(*reference.origin(name).rsplit(".", 1))]
    assert silent == []


def described(module: str, name: str) -> bool:
    """Whether a module says something of a name: in its docstring, or in the line below a constant."""
    place = reference.SOURCE.parent / Path(*module.split("."))
    body = ast.parse((place / "__init__.py" if place.is_dir() else place.with_suffix(".py")).read_text()).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node) is not None
        given = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if name in [getattr(target, "id", None) for target in given]:
            return isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    return False


@pytest.mark.parametrize("module", [links, notebooks, reference, tables], ids=lambda module: module.__name__)
def test_the_examples_of_the_tools_are_true(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_an_error_in_a_notebook_is_not_passed_over() -> None:
    with pytest.raises(ZeroDivisionError):
        notebooks.run("1 / 0", {}, 1)
