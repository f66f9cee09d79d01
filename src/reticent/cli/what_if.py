"""`reticent plan --what-if`: a table of budgets and the runs they get, in words and as a page with a chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.experiments.what_if import WhatIf

HEAD = ("epsilon", "noise", "rounds", "batch", "lr", "signal/noise of a step", "of the run")
WIDTH, HEIGHT, MARGIN = 480, 280, 52
STYLE = (
    "body{font:15px sans-serif;max-width:48em;margin:2em auto;padding:0 1em}td,th{padding:.2em .8em;text-align:right}"
)


def in_words(rows: Sequence[WhatIf], method: str) -> str:
    """The table for people."""
    cells = [HEAD, *map(_cells, rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    return "\n".join(
        [*lines, f"{method}, by the rule; delta {rows[0].delta:.3g}; what a step's signal means: docs/choosing.md"]
    )


def page(rows: Sequence[WhatIf], title: str) -> str:
    """The table as a page by itself, with a chart of the run's signal-to-noise ratio over epsilon."""
    from html import escape

    head = "".join(f"<th>{name}</th>" for name in HEAD)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in _cells(row)) + "</tr>" for row in rows)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
        f"<h1>{escape(title)}</h1><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{chart(rows)}</html>"
    )


def chart(rows: Sequence[WhatIf]) -> str:
    """Signal-to-noise of the run over epsilon, both logarithmic, as SVG."""
    xs, ys = [math.log10(row.epsilon) for row in rows], [math.log10(row.signal) for row in rows]
    low, high = math.floor(min(ys)), max(math.ceil(max(ys)), math.floor(min(ys)) + 1)
    span = max(xs) - min(xs) or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        across = MARGIN + (x - min(xs)) / span * (WIDTH - 1.5 * MARGIN)
        return across, HEIGHT - MARGIN - (y - low) / (high - low) * (HEIGHT - 1.5 * MARGIN)

    parts = []
    for power in range(low, high + 1):
        _, y = place(min(xs), power)
        parts.append(f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN / 2}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ccc"/>')
        parts.append(f'<text x="{MARGIN - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    points = [place(x, y) for x, y in zip(xs, ys, strict=True)]
    for row, (x, y) in zip(rows, points, strict=True):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="#2a788e"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{row.epsilon:.3g}</text>')
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" '
        f'font-family="sans-serif" font-size="11"><title>Signal-to-noise ratio of a run over epsilon</title>'
        f'<polyline points="{line}" fill="none" stroke="#2a788e" stroke-width="1.5"/>{"".join(parts)}'
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">epsilon</text>'
        f'<text x="6" y="14">signal/noise of the run</text></svg>'
    )


def _cells(row: WhatIf) -> tuple[str, ...]:
    from reticent.accounting.guarantee import round_up

    return (
        round_up(row.epsilon),
        f"{row.noise_multiplier:.3g}",
        str(row.rounds),
        f"{row.batch_size:g}",
        f"{row.lr:.3g}",
        f"{row.step_signal:.3g}",
        f"{row.signal:.3g}",
    )
