"""Tables of the pages that are taken from other files: `python -m tools.site.tables` writes them anew."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "docs" / "index.md", ROOT / "docs" / "peers.md")
TABLE = re.compile(r"(<!-- table: (\w+) -->\n)((?:\|.*\n)*)")
FEW = (
    "one call trains",
    "into an existing loop",
    "several processes",
    "fast clipping without per-example gradients",
    "exact resume after kill -9",
    "cryptographic noise",
    "charged on disk before anything is released",
    "a budget for a dataset, across runs and people",
    "DPSUR, DPIS, DPSign, SA-DPSGD at equal proved epsilon",
    "LiRA / RMIA",
    "audit in one run",
    "correlated noise (DP-FTRL)",
    "trained weights cut over machines (FSDP)",
)
"""What the front page shows of the comparison with others: what sets us apart, and two things that we lack."""


def rows(text: str) -> list[list[str]]:
    """The cells of the tables in a text.

    >>> rows("| a | b |\\n|---|---|\\n| 1 | 2 |")
    [['a', 'b'], ['1', '2']]
    """
    lines = [line for line in text.splitlines() if line.startswith("|") and set(line) - set("|-: ")]
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]


def written(table: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(row)} |" for row in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]]) + "\n"


def speed() -> str:
    """Our step beside SGD and the nearest peer, by the clock, as the benchmark found it under both allocators."""
    found: dict[str, list[str]] = {}
    heads = ["case"]
    for part in (ROOT / "benchmarks" / "results" / "table.md").read_text().split("\n## ")[1:]:
        if "cpu time" in part.partition("\n")[0]:
            continue  # other cases, on one thread: the table of the benchmark has them
        short = rows(part.split("\n\n")[1])
        ours, nearest = short[0].index("ours to SGD"), short[0].index("nearest peer")
        told = part.split(",")[0]
        heads += [f"{told}: ours to SGD", "nearest"]
        for row in short[1:]:
            found.setdefault(row[0], []).extend([row[ours].strip("*"), row[nearest].replace(" x ours", " x")])
    return written([heads, *([case, *cells] for case, cells in found.items())])


def peers() -> str:
    """A few rows of the comparison with others."""
    table = rows((ROOT / "docs" / "peers.md").read_text())
    head = next(row for row in table if row[0] == "feature")
    return written([head, *(next(row for row in table if row[0] == name) for name in FEW)])


def with_tables(text: str) -> str:
    """A page with its tables as they are now."""
    makers = {"speed": speed, "peers": peers}
    return TABLE.sub(lambda table: table[1] + makers[table[2]](), text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(with_tables(page.read_text()))
