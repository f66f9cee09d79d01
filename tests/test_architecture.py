"""Who may import whom, who may peek, and that every exported name is there: read from the syntax trees."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "reticent"

ANYTHING = None
ROW = re.compile(r"^\| `(\w+)(?:\.py|/)` \| ([^|]*?)(?: \(.*\))? \|", re.MULTILINE)


def table() -> dict[str, set[str] | None]:
    """Who may import whom, as CONTRIBUTING.md says it."""
    rows = ROW.findall((SOURCE.parents[1] / "CONTRIBUTING.md").read_text())
    allowed: dict[str, set[str] | None] = {}
    for name, said in rows:
        free = said.startswith("anything")
        allowed[name] = ANYTHING if free else set() if said == "nothing" else set(said.split(", "))
    return allowed


MAY_IMPORT = table()
# What repeats a whole run lives in a higher room, and a lower one shows it under its name without loading it.
SHOWN: dict[str, set[str]] = {
    "attacks/__init__.py": {"experiments"},
    "audits/__init__.py": {"experiments"},
    "trained.py": {"audits", "experiments"},
}
SECRETS = {"_value", "_index", "_examples", "_randomness", "_open", "_key"}

FILES = sorted(SOURCE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(tree: ast.Module) -> Iterator[str]:
    """The rooms of ours that a module imports, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "reticent":
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (name.name.split(".")[1] for name in node.names if name.name.startswith("reticent."))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_stay_within_the_rooms(path: Path) -> None:
    here = room(path)
    if here == "__init__":
        return
    allowed = MAY_IMPORT[here]
    found = {name for name in imports(ast.parse(path.read_text())) if name != here}
    if allowed is not ANYTHING:
        allowed = allowed | SHOWN.get(str(path.relative_to(SOURCE)), set())
        assert found <= allowed | {"errors", "files", "reading", "__version__"}, (
            f"{here} may not import {sorted(found - allowed)}"
        )
    assert here in {"cli", "__main__"} or "cli" not in found


# Accounting imports nothing of ours, so that what it calls by these names is its own.
PEEKERS = [path for path in FILES if room(path) not in {"inside", "accounting"}]


@pytest.mark.parametrize("path", PEEKERS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nobody_peeks_from_outside(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr in SECRETS:
            own = isinstance(node.value, ast.Name) and node.value.id == "self"
            assert own, f"line {node.lineno}: {node.attr} belongs to the inner room"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"Draw", "Sealed"}, f"line {node.lineno}: only the inner room makes these"


@pytest.mark.parametrize("path", [p for p in FILES if room(p) == "accounting"], ids=lambda p: p.name)
def test_accounting_never_touches_torch(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not any(name.split(".")[0] == "torch" for name in names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_and_functions_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 300
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            body = (node.end_lineno or 0) - node.body[0].lineno + 1
            assert body <= 60, f"{node.name} has {body} lines"


def test_the_table_names_every_room() -> None:
    assert set(MAY_IMPORT) == {room(path) for path in FILES} - {"__init__"}


def test_no_module_is_hidden_by_a_name_of_its_package() -> None:
    for module in pkgutil.walk_packages([str(SOURCE)], "reticent."):
        importlib.import_module(module.name)
        package, _, name = module.name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(package), name), ModuleType), f"{module.name} is hidden"


def test_no_two_classes_share_a_name() -> None:
    found: dict[str, Path] = {}
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                other = found.setdefault(node.name, path)
                assert other == path, f"{node.name} is in {other} and in {path}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {_name(path): set(_modules(path)) for path in FILES}
    graph = {name: {other for other in found if other in graph} for name, found in graph.items()}
    list(TopologicalSorter(graph).static_order())  # raises CycleError with the modules of the circle


def _name(path: Path) -> str:
    parts = ("reticent", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _modules(path: Path) -> Iterator[str]:
    """The modules that one needs before it can be used; what a function imports when it is called does not count."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reticent"):
            # A package is taken for its parts where these are what is imported: its __init__ may import the importer.
            for alias in node.names:
                part = f"{node.module}.{alias.name}"
                place = SOURCE.parent / Path(*part.split("."))
                yield part if place.is_dir() or place.with_suffix(".py").exists() else str(node.module)


def test_any_is_rare() -> None:
    lines = [line for path in FILES for line in path.read_text().splitlines()]
    count = sum(len(re.findall(r"\bAny\b", line)) for line in lines)
    assert 1000 * count / len(lines) <= 8


@pytest.mark.parametrize("path", [p for p in FILES if p.name == "__init__.py"], ids=lambda p: p.parent.name)
def test_exported_names_exist(path: Path) -> None:
    name = ".".join(("reticent", *path.parent.relative_to(SOURCE).parts))
    module = importlib.import_module(name)
    for exported in getattr(module, "__all__", []):
        assert getattr(module, exported) is not None, f"{name}.{exported}"


def test_what_a_room_shows_of_a_higher_one_is_not_loaded_with_it() -> None:
    rooms = ", ".join(f"reticent.{room}" for room in ("attacks", "audits", "fitting", "trained"))
    program = f"import sys, {rooms}; print('reticent.experiments' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
