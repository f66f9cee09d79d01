"""Pages as notebooks: written from the page, executed from top to bottom, with what they print.

`python -m tools.site.notebooks FOLDER` writes them there; `make docs` puts them into the site.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```python\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
OWN = """\
# The page speaks of your own model and data; these stand for them.
import torch

y = torch.arange(200) % 2
x = torch.randn(200, 4, generator=torch.Generator().manual_seed(1)) + 3.0 * y[:, None]
new_model = lambda: torch.nn.Linear(4, 2)
model = new_model()
"""
PAGES = {"your-model.md": OWN, "tutorials/own-csv.md": "", "tutorials/audit.md": OWN}
"""Which pages, and what must be there before their first line."""


def place(page: str) -> str:
    """Where the site has the notebook of a page.

    >>> place("tutorials/own-csv.md")
    'notebooks/own-csv.ipynb'
    """
    return f"notebooks/{Path(page).stem}.ipynb"


def announced(text: str, page: Path) -> str:
    """The text of a page with a link to its notebook under its title, if it has one."""
    name = page.relative_to(ROOT).as_posix().removeprefix("docs/")
    if name not in PAGES:
        return text
    title, _, rest = text.partition("\n")
    up = "../" * name.count("/")
    return f"{title}\n\n[This page as a notebook, executed]({up}{place(name)})\n{rest}"


def cells(text: str) -> Iterator[tuple[str, str]]:
    """The parts of a page in their order: ("markdown", text) and ("code", text).

    >>> list(cells("# A\\n```python\\n1 + 1\\n```\\nb"))
    [('markdown', '# A'), ('code', '1 + 1'), ('markdown', 'b')]
    """
    end = 0
    for fence in FENCE.finditer(text):
        yield "markdown", text[end : fence.start()].strip()
        yield "code", fence[1].strip()
        end = fence.end()
    yield "markdown", text[end:].strip()


def run(code: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """What a cell prints, and what its last expression is, as a notebook keeps them.

    >>> [part["output_type"] for part in run("print(1)\\n2", {}, 1)]
    ['stream', 'execute_result']
    """
    tree, printed, value = ast.parse(code), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(tree, f"cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    if value is not None:
        shown = {"data": {"text/plain": repr(value)}, "metadata": {}, "execution_count": number}
        found.append({"output_type": "execute_result", **shown})
    return found


def executed(page: str) -> str:
    """A page of `docs/` as a notebook, executed in an empty folder; an error in it is an error here."""
    first, *rest = cells((ROOT / "docs" / page).read_text())
    parts = [part for part in (first, ("code", PAGES[page]), *rest) if part[1]]
    book: list[dict[str, Any]] = []
    names: dict[str, Any] = {"__name__": "__main__"}
    number, before = 0, Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for kind, text in parts:
                cell: dict[str, Any] = {"id": f"c{len(book)}", "cell_type": kind, "metadata": {}, "source": text}
                if kind == "code":
                    number += 1
                    cell |= {"execution_count": number, "outputs": run(text, names, number)}
                book.append(cell)
        finally:
            os.chdir(before)
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": about, "cells": book}, indent=1) + "\n"


if __name__ == "__main__":
    for name in PAGES:
        target = Path(sys.argv[1]) / Path(place(name)).name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(executed(name))
        print(target)
