"""Links of the repository, turned into those of the site; files that pages link to are shown too."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
BESIDE = ("results/*.md", "benchmarks/results/*.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages outside `docs/` that the site shows as they lie there."""
LANGUAGES = {".py": "python", ".toml": "toml", ".sh": "sh", ".yml": "yaml"}
FENCE = re.compile(r"^( *)(```+).*?^\1\2$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)(#[^)\s]*)?(?=[)\s])")


def pages() -> Iterator[Path]:
    """Every page that is written by hand, wherever it lies."""
    yield from sorted((ROOT / "docs").rglob("*.md"))
    for pattern in BESIDE:
        yield from sorted(ROOT.glob(pattern))


def place(path: Path) -> str:
    """Where the site has a file of the repository.

    >>> place(ROOT / "docs/data.md"), place(ROOT / "benchmarks/results/table.md"), place(ROOT / "README.md")
    ('data.md', 'benchmarks/table.md', 'index.md')
    >>> place(ROOT / "src/reticent/run.py"), place(ROOT / "benchmarks/results/plot.svg")
    ('source/src/reticent/run.py.md', 'benchmarks/plot.svg')
    """
    name = path.relative_to(ROOT).as_posix()
    if name == "README.md":
        return "index.md"
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    if path.suffix in LANGUAGES:
        return f"source/{name}.md"
    return name.replace("benchmarks/results/", "benchmarks/", 1)


def changed(text: str, turn: Callable[[re.Match[str]], str]) -> str:
    """The text with every relative link turned; code in fences is left as it is.

    >>> changed("[a](b.md#c) `x`", lambda link: link[1].upper())
    '[a](B.MD) `x`'
    >>> changed("[a](https://b.org/c) [d](#e)", lambda link: "?")
    '[a](https://b.org/c) [d](#e)'
    """
    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(turn, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, LINK.sub(turn, text[end:])])


def for_the_site(text: str, page: Path) -> str:
    """The text of a page with links as the site has them."""
    here = Path(place(page)).parent

    def turn(link: re.Match[str]) -> str:
        target = (page.parent / link[1]).resolve()
        return Path(os.path.relpath(place(target), here)).as_posix() + (link[2] or "")

    return changed(text, turn)


def linked() -> set[Path]:
    """The files outside `docs/` that pages link to and that are no pages themselves."""
    found: set[Path] = set()
    for page in pages():
        changed(page.read_text(), lambda link, page=page: str(found.add((page.parent / link[1]).resolve())))  # type: ignore[misc]
    return {path for path in found if path.suffix != ".md" and not path.is_relative_to(ROOT / "docs")}


def as_a_page(path: Path) -> str:
    """A file of code as a page; who searches looks for words, not for code."""
    name, language = path.relative_to(ROOT).as_posix(), LANGUAGES[path.suffix]
    return f"---\nsearch: {{ exclude: true }}\n---\n# `{name}`\n\n````{language}\n{path.read_text()}````\n"
