"""The pages name only what exists: files, classes, tests, other pages, and the loop as it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from reticent import catalogue, methods
from reticent.inside.planted import bugs

ROOT = Path(__file__).parents[2]
DOCS, SOURCE = ROOT / "docs", ROOT / "src" / "reticent"
PAGES = sorted(DOCS.rglob("*.md"))
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))

QUOTED = re.compile(r"`([^`]+)`")
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
BUGS = re.compile(r"planted bugs? ((?:`[\w-]+`(?:, )?)+)")
LINK = re.compile(r"\[[^\]]+\]\(([^)#:]+)(?:#[^)]*)?\)")


@cache
def defined(path: Path) -> frozenset[str]:
    """Everything a module defines: `name`, `Class`, `Class.member`."""
    found = set(members(ast.parse(path.read_text()).body))
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{name}" for name in members(node.body)}
    return frozenset(found)


def members(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def rows_of_code(page: Path) -> Iterator[str]:
    """The last cells of every table whose last column is called "here"."""
    inside = False
    for line in page.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif cells[-1] == "here":
            inside = True
        elif inside and set(line) - set("|-: "):
            yield cells[-1]


def named(cell: str) -> Iterator[tuple[Path, str | None]]:
    """The files a cell names, each with the names in it that follow."""
    path = None
    for word in QUOTED.findall(cell):
        if word.endswith(".py"):
            path = SOURCE / word
            yield path, None
        elif path is not None:
            yield path, word


@each_page
def test_tables_of_code_name_what_exists(page: Path) -> None:
    for cell in rows_of_code(page):
        for path, name in named(cell):
            assert path.exists(), f"{path.relative_to(SOURCE)} is not there"
            assert name is None or name in defined(path), f"{path.relative_to(SOURCE)} has no {name}"


def test_the_tables_are_found() -> None:
    cells = [pair for page in (DOCS / "methods").glob("dp*.md") for cell in rows_of_code(page) for pair in named(cell)]
    assert len(cells) > 60


@each_page
def test_tests_that_are_named_exist(page: Path) -> None:
    for file, name in TEST.findall(page.read_text()):
        assert (ROOT / file).exists(), file
        assert name in defined(ROOT / file), f"{file} has no {name}"
    for names in BUGS.findall(page.read_text()):
        assert set(QUOTED.findall(names)) <= {bug.name for bug in bugs()}


def test_the_page_of_pitfalls_names_tests() -> None:
    text = (DOCS / "pitfalls.md").read_text()
    assert len(TEST.findall(text)) > 40
    assert len(BUGS.findall(text)) >= 6


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{target} is not there"


@pytest.mark.parametrize("row", methods.listing(), ids=lambda row: row["name"])
def test_every_method_has_its_page_and_its_table_is_true(row: dict[str, object]) -> None:
    page = ROOT / str(row["docs"])
    assert page.exists()
    assert str(row["name"]) in page.read_text()
    for place in dict(row["equations"]).values():  # type: ignore[call-overload]
        file, *names = re.split(r",? ", place)
        if file.endswith(".py"):
            assert (SOURCE / file).exists(), place
            assert set(names) <= defined(SOURCE / file), place


def test_the_loop_is_quoted_from_the_code() -> None:
    quoted = re.search(r"```py\n(.*?)```", (DOCS / "pipeline.md").read_text(), re.DOTALL)
    assert quoted is not None
    lines = iter(line.strip() for line in (SOURCE / "loop.py").read_text().splitlines())
    for line in filter(None, map(str.strip, quoted[1].splitlines())):
        assert line.startswith("...") or line in lines, f"loop.py does not go on with: {line}"


@pytest.mark.parametrize("page", sorted((DOCS / "methods").glob("*.md")), ids=lambda page: page.name)
def test_pages_of_methods_are_short_and_alike(page: Path) -> None:
    text = page.read_text()
    assert len(text.splitlines()) <= 140
    for part in ("Claim", "What is proved", "Run it", "When it pays"):
        assert part in text, f"{part} is missing"


@pytest.mark.parametrize(("page", "docs"), [("README.md", "docs/"), ("docs/index.md", "")])
def test_the_tables_of_methods_come_from_their_files(page: str, docs: str) -> None:
    assert catalogue.markdown(docs) in (DOCS.parent / page).read_text(), (
        "paste what `reticent methods --markdown` prints"
    )
