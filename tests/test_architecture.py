"""Who may import whom, who may peek, and that every exported name is there: read from the syntax trees."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
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


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def each(files: Iterable[Path], wrongs: Callable[[Path], Iterator[str]]) -> list[str]:
    """What is wrong in all the files: one test for all of them, since thousands take half a minute to begin and end."""
    return [f"{path.relative_to(SOURCE)}: {wrong}" for path in files for wrong in wrongs(path)]


def test_imports_stay_within_the_rooms() -> None:
    assert each(FILES, trespasses) == []


def trespasses(path: Path) -> Iterator[str]:
    here = room(path)
    if here == "__init__":
        return
    allowed = MAY_IMPORT[here]
    found = {name for name in imports(parsed(path)) if name != here}
    if allowed is not ANYTHING:
        allowed = allowed | SHOWN.get(str(path.relative_to(SOURCE)), set())
        beyond = found - allowed - {"errors", "files", "reading", "__version__"}
        if beyond:
            yield f"{here} may not import {sorted(beyond)}"
    if here not in {"cli", "__main__"} and "cli" in found:
        yield "only the command line imports cli"


# Accounting imports nothing of ours, so that what it calls by these names is its own.
PEEKERS = [path for path in FILES if room(path) not in {"inside", "accounting"}]


def test_nobody_peeks_from_outside() -> None:
    assert each(PEEKERS, peeks) == []


def peeks(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Attribute) and node.attr in SECRETS:
            own = isinstance(node.value, ast.Name) and node.value.id == "self"
            if not own:
                yield f"line {node.lineno}: {node.attr} belongs to the inner room"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"Draw", "Sealed"}:
            yield f"line {node.lineno}: only the inner room makes these"


def test_accounting_never_touches_torch() -> None:
    assert each([path for path in FILES if room(path) == "accounting"], torches) == []


def torches(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        yield from (f"imports {name}" for name in names if name.split(".")[0] == "torch")


def test_every_module_says_what_it_is() -> None:
    assert [path for path in FILES if not ast.get_docstring(parsed(path))] == []


def test_files_and_functions_stay_small() -> None:
    assert each(FILES, sprawl) == []


def sprawl(path: Path) -> Iterator[str]:
    lines = len(path.read_text().splitlines())
    if lines > 300:
        yield f"{lines} lines"
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef):
            body = (node.end_lineno or 0) - node.body[0].lineno + 1
            if body > 60:
                yield f"{node.name} has {body} lines"


@pytest.mark.parametrize(
    ("wrongs", "place", "source"),
    [
        (trespasses, "inside/a.py", "from reticent.cli import app"),
        (trespasses, "methods/a.py", "import reticent.report.page"),
        (peeks, "outside/a.py", "vault._examples"),
        (peeks, "run.py", "Sealed(1)"),
        (torches, "accounting/a.py", "def f():\n    from torch import nn"),
        (sprawl, "a.py", "x = 1\n" * 301),
        (sprawl, "a.py", "def f():\n" + "    x = 1\n" * 61),
    ],
)
def test_what_is_wrong_is_found(
    wrongs: Callable[[Path], Iterator[str]], place: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    assert each([path], wrongs)


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
        for node in parsed(path).body:
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
    for node in parsed(path).body:
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


def test_exported_names_exist() -> None:
    for path in FILES:
        if path.name == "__init__.py":
            name = ".".join(("reticent", *path.parent.relative_to(SOURCE).parts))
            module = importlib.import_module(name)
            for exported in getattr(module, "__all__", []):
                assert getattr(module, exported) is not None, f"{name}.{exported}"


def test_what_a_room_shows_of_a_higher_one_is_not_loaded_with_it() -> None:
    rooms = ", ".join(f"reticent.{room}" for room in ("attacks", "audits", "fitting", "trained"))
    program = f"import sys, {rooms}; print('reticent.experiments' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
