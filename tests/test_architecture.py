"""Who may import whom, who may peek, and that every exported name is there: read from the syntax trees."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "reticent"

ANYTHING = None
MAY_IMPORT: dict[str, set[str] | None] = {
    "errors": set(),
    "accounting": set(),
    "gradients": set(),
    "inside": {"accounting", "gradients"},
    "outside": {"inside", "accounting"},
    "about": set(),
    "methods": {"inside", "outside", "accounting", "about"},
    "losses": {"inside"},
    "checkpoint": set(),
    "describing": set(),
    "standing": {"inside"},
    "loop": {"methods", "inside", "outside", "standing"},
    "run": {
        "methods",
        "inside",
        "outside",
        "accounting",
        "gradients",
        "checkpoint",
        "describing",
        "losses",
        "loop",
        "standing",
    },
    "fitting": {"methods", "inside", "accounting", "checkpoint", "losses", "run"},
    "models": set(),
    "data": {"inside"},
    "defences": {"models", "data", "accounting", "about"},
    "catalogue": {"methods", "defences", "about"},
    "attacks": {"gradients", "data", "models"},
    "audits": {"run", "inside", "outside", "methods", "accounting", "attacks"},
    "experiments": ANYTHING,
    "report": {"accounting", "catalogue"},
    "integrations": ANYTHING,
    "cli": ANYTHING,
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
        assert found <= allowed | {"errors", "__version__"}, f"{here} may not import {sorted(found - allowed)}"
    assert here == "cli" or "cli" not in found


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
def test_files_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", [p for p in FILES if p.name == "__init__.py"], ids=lambda p: p.parent.name)
def test_exported_names_exist(path: Path) -> None:
    name = ".".join(("reticent", *path.parent.relative_to(SOURCE).parts))
    module = importlib.import_module(name)
    for exported in getattr(module, "__all__", []):
        assert getattr(module, exported) is not None, f"{name}.{exported}"
