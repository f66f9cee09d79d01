"""What is loaded before it is needed: nothing heavy, so that `import reticent` and `--help` answer at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "numpy", "scipy", "sklearn", "pandas", "dp_accounting", "jinja2", "sqlalchemy", "safetensors", "ray")


def loaded(program: str) -> list[str]:
    """Which of the heavy packages a program has loaded at its end."""
    watch = f"import sys\n{program}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    said = subprocess.run([sys.executable, "-c", watch], capture_output=True, text=True, check=True)
    return said.stdout.splitlines()[-1].split()


@pytest.mark.parametrize(
    "program",
    [
        "import reticent; reticent.__version__; dir(reticent)",
        "from typer.testing import CliRunner\nfrom reticent.cli import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0",
    ],
    ids=["import reticent", "reticent --help"],
)
def test_nothing_heavy_is_loaded(program: str) -> None:
    assert loaded(program) == []


def test_a_name_loads_what_it_needs() -> None:
    """So that the tests above can fail: the first name of all that trains brings torch."""
    assert "torch" in loaded("import reticent; reticent.fit")
