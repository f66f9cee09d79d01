"""The table and the plot of a race."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean

PAPER_ORDER = [
    "sgd",
    "sgd again",
    "sgd channels last",
    "ours",
    "ours in a run",
    "opacus hooks",
    "opacus ghost",
    "opacus functorch",
    "vmap",
    "jax privacy",
]
COLOURS = {
    "ours": "#0b6e4f",
    "ours in a run": "#5aa88a",
    "sgd": "#888888",
    "sgd again": "#aaaaaa",
    "sgd channels last": "#bbbbbb",
}
Goals = tuple[float | None, float | None, float | None]
NO_GOALS: Goals = (None, None, None)
GOALS: dict[str, Goals] = {
    "mnist512": (0.70, 1.25, 1.0),
    "mnist2048": (0.70, 1.25, 1.0),
    "cifar256": (1.0, 1.2, 1.0),
    "cifar1024": (1.0, 1.2, 1.0),
    "imdb256": (0.95, None, 1.0),
    "wrn64": (1.10, 1.15, 1.1),
    "purchase2048": (1.15, None, 1.0),
    "features2048": (1.25, None, 1.0),
    "transformer32": (1.10, None, 1.0),
    "scattering2048": (1.25, 1.4, 1.1),
}
"""What we set out for, as ratios to SGD: time, time to the better layout, peak memory; all with default malloc."""
NOTE = """Ratios to plain SGD (`sgd`) in the same run; in brackets milliseconds a step and peak MB of the process.
`ours` is the private step that every peer makes; `ours in a run` a round of `rt.Run`, all checks in it.
`sgd again` is the same work as `sgd`: what differs there is the noise of the measurement. The short tables take the
mean of both.
"""


def write_table(records: list[dict], path: Path) -> None:
    """What matters first, then everybody: two tables for each setting of allocator, threads and clock."""
    lines = ["# A private step beside a plain one", "", NOTE, *dict.fromkeys(made_by(record) for record in records), ""]
    for malloc, threads, clock in sorted({(r["malloc"], r["threads"], r.get("clock", "wall")) for r in records}):
        some = [r for r in records if (r["malloc"], r["threads"], r.get("clock", "wall")) == (malloc, threads, clock)]
        rows = {
            case: {r["peer"]: r for r in some if r["case"] == case} for case in dict.fromkeys(r["case"] for r in some)
        }
        peers = [peer for peer in PAPER_ORDER if any(r["peer"] == peer for r in some)]
        lines += [
            f"## malloc {malloc}, {threads} thread{'s' * (threads > 1)}, {clock} time",
            "",
            *_summary(rows, GOALS if malloc == "default" else {}),
            "",
        ]
        lines += ["| case | " + " | ".join(peers) + " |", "|---" * (len(peers) + 1) + "|"]
        lines += [f"| {case} | " + " | ".join(_cell(row.get(p)) for p in peers) + " |" for case, row in rows.items()]
        lines.append("")
    path.write_text("\n".join(lines))


def _summary(rows: dict[str, dict[str, dict]], goals: Mapping[str, Goals]) -> Iterator[str]:
    """Ours beside SGD (the mean of its two runs), with the goals, and the nearest peer; what is missed is in bold."""
    yield "| case | ours to SGD | goal | to the better layout | goal | peak memory to SGD | goal | nearest peer |"
    yield "|---" * 8 + "|"
    for case, row in rows.items():
        if "ms" not in row.get("ours", {}) or "ms" not in row.get("sgd", {}):
            continue
        ours, twice = row["ours"], [row[peer] for peer in ("sgd", "sgd again") if "ms" in row.get(peer, {})]
        plain, memory = (fmean(r[what] for r in twice) for what in ("ms", "peak"))
        better = min(plain, row.get("sgd channels last", {}).get("ms", plain))
        found = (ours["ms"] / plain, ours["ms"] / better, ours["peak"] / memory)
        figures = [
            part for value, goal in zip(found, goals.get(case, NO_GOALS), strict=True) for part in _beside(value, goal)
        ]
        others = [r for peer, r in row.items() if not peer.startswith(("ours", "sgd")) and "ms" in r]
        nearest = min(others, key=lambda r: r["ms"], default=None)
        last = f"{nearest['peer']}, {nearest['ms'] / ours['ms']:.2f} x ours" if nearest else "-"
        yield f"| {case} | " + " | ".join(figures) + f" | {last} |"


def _beside(value: float, goal: float | None) -> tuple[str, str]:
    if goal is None:
        return f"{value:.2f}", ""
    return (f"{value:.2f}" if round(value, 2) <= goal else f"**{value:.2f}**"), f"{goal:.2f}"


def made_by(about: dict) -> str:
    """The command, commit and versions behind a figure, as a line of a list."""
    return f"- `{about['command']}`, commit {about['commit']}, {about['machine']}, torch {about['versions']['torch']}"


def _cell(record: dict | None) -> str:
    if record is None:
        return "-"
    if "absent" in record:
        return f"absent ({record['absent']})"
    return f"{record.get('ratio', float('nan')):.2f} ({record['ms']:.1f}; {record['peak']:.0f})"


def write_plot(records: list[dict], path: Path) -> None:
    """Bars of the ratios, one group a case, as a plain SVG file."""
    shown = [r for r in records if "ratio" in r and r["malloc"] == records[0]["malloc"]]
    cases = list(dict.fromkeys(r["case"] for r in shown))
    height, left, scale, most = 14, 150, 90, 8.0
    parts, y = [], 20
    for case in cases:
        parts.append(f'<text x="10" y="{y + 10}" font-weight="bold">{case}</text>')
        for record in sorted((r for r in shown if r["case"] == case), key=lambda r: PAPER_ORDER.index(r["peer"])):
            length = min(record["ratio"], most) * scale
            colour = COLOURS.get(record["peer"], "#c46210")
            parts.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{height - 3}" fill="{colour}"/>')
            more = " (cut)" if record["ratio"] > most else ""
            label = f"{record['peer']} {record['ratio']:.2f}{more}"
            parts.append(f'<text x="{left + length + 4:.1f}" y="{y + 9}">{label}</text>')
            y += height
        y += 10
    line = f'<line x1="{left + scale}" x2="{left + scale}" y1="10" y2="{y}" stroke="#444" stroke-dasharray="3 3"/>'
    size = f'width="{left + int(most * scale) + 160}" height="{y + 10}"'
    style = 'font-family="sans-serif" font-size="10"'
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n' + "\n".join([*parts, line]) + "\n</svg>\n"
    )
