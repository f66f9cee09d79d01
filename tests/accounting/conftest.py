"""Golden numbers for the accounting tests; every file tells its source."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "golden"


def _load(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text())


@pytest.fixture
def golden() -> Callable[[str], dict[str, Any]]:
    return _load


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "each(file, table): once for every row of a golden table, as `row`")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("each")
    if mark is not None:
        rows = _load(mark.args[0])[mark.args[1]]
        metafunc.parametrize("row", rows, ids=[str(row.get("name", index)) for index, row in enumerate(rows)])
