"""The table and the plot of a race."""

from __future__ import annotations

from pathlib import Path

PAPER_ORDER = ["sgd", "sgd again", "sgd channels last", "ours", "opacus hooks", "opacus ghost", "vmap", "jax privacy"]
COLOURS = {"ours": "#0b6e4f", "sgd": "#888888", "sgd again": "#aaaaaa", "sgd channels last": "#bbbbbb"}
NOTE = """Ratios to plain SGD (`sgd`) in the same run; in brackets milliseconds a step and peak MB of the process.
`sgd again` is the same work as `sgd`: what differs there is the noise of the measurement.
"""


def write_table(records: list[dict], path: Path) -> None:
    """One table for each setting of allocator and threads."""
    lines = ["# A private step beside a plain one", "", NOTE, *_made_by(records), ""]
    for malloc, threads in sorted({(r["malloc"], r["threads"]) for r in records}):
        some = [r for r in records if (r["malloc"], r["threads"]) == (malloc, threads)]
        peers = [peer for peer in PAPER_ORDER if any(r["peer"] == peer for r in some)]
        lines += [f"## malloc {malloc}, {threads} threads", "", "| case | " + " | ".join(peers) + " | best layout |"]
        lines += ["|---" * (len(peers) + 2) + "|"]
        for case in dict.fromkeys(r["case"] for r in some):
            row = {r["peer"]: r for r in some if r["case"] == case}
            lines.append(f"| {case} | " + " | ".join(_cell(row.get(peer)) for peer in peers) + f" | {_best(row)} |")
        lines += ["", "`best layout`: ours beside the faster of the two SGDs.", ""]
    path.write_text("\n".join(lines))


def _made_by(records: list[dict]) -> list[str]:
    """The commands, commits and versions behind the figures."""
    found = dict.fromkeys((r["command"], r["commit"], r["machine"], r["versions"]["torch"]) for r in records)
    return [f"- `{command}`, commit {commit}, {machine}, torch {torch}" for command, commit, machine, torch in found]


def _cell(record: dict | None) -> str:
    if record is None:
        return "-"
    if "absent" in record:
        return f"absent ({record['absent']})"
    return f"{record.get('ratio', float('nan')):.2f} ({record['ms']:.1f}; {record['peak']:.0f})"


def _best(row: dict[str, dict]) -> str:
    plain = [row[peer]["ms"] for peer in ("sgd", "sgd channels last") if "ms" in row.get(peer, {})]
    return f"{row['ours']['ms'] / min(plain):.2f}" if plain and "ms" in row.get("ours", {}) else "-"


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
