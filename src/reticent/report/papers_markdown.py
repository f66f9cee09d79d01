"""The papers in Markdown: the opening table, main tables side by side, and a page for each paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reticent.accounting.guarantee import round_up
from reticent.report.papers import RULE, Ours, Paper, PaperCounts, PaperNumber, PaperTable

UNEXPLAINED = "not looked into yet"


def opening(papers: Sequence[Paper]) -> str:
    """Paper by paper, how many numbers are printed, have an entry, were run, and come out near.

    >>> print(opening([Paper("mine", "Mine", ())]).splitlines()[0])
    | paper | numbers printed | with an entry | run | run on stand-ins | near, own accounting | near, proved epsilon |
    """
    head = (
        "paper",
        "numbers printed",
        "with an entry",
        "run",
        "run on stand-ins",
        "near, own accounting",
        "near, proved epsilon",
    )
    rows = [(f"[{paper.name}]({paper.name}.md)", *_counts(paper.counts)) for paper in papers]
    return as_table([head, *rows, ("all", *_counts(PaperCounts.added([paper.counts for paper in papers])))])


def _counts(counts: PaperCounts) -> list[str]:
    numbers = (counts.printed, counts.entered, counts.run, counts.stand_ins, counts.near_own, counts.near_proved)
    return [str(number) for number in numbers]


def side_by_side(table: PaperTable) -> str:
    """A table as the paper prints it, without the rows that nobody has run; the page of the paper has those too."""
    run = {_row(number) for number in table.numbers if number.proved is not None or number.claimed is not None}
    head, *rows = laid_out(table)
    return as_table([head, *(row for row in rows if row[0] in run)])


def laid_out(table: PaperTable) -> list[list[str]]:
    """A table as the paper prints it, head first, each number as `printed / as claimed / at a proved epsilon`."""
    columns = list(dict.fromkeys(number.column for number in table.numbers))
    rows: dict[str, dict[str, PaperNumber]] = {}
    for number in table.numbers:
        rows.setdefault(_row(number), {})[number.column] = number
    lines = [["printed / as claimed / proved", *columns, "seeds"]]
    for name, numbers in rows.items():
        shown = [_three(numbers[column]) if column in numbers else "" for column in columns]
        lines.append([name, *shown, _seeds(numbers.values())])
    return lines


def _row(number: PaperNumber) -> str:
    measure = "" if number.measure == "accuracy" else f", {number.measure}"
    stand_in = "" if number.stand_in is None else " (stand-in)"
    return f"{number.row}{measure}{stand_in}"


def _three(number: PaperNumber) -> str:
    means = [None if ours is None else ours.spread.mean for ours in (number.claimed, number.proved)]
    return " / ".join(said(number.measure, value) or "–" for value in (number.printed, *means))


def _seeds(numbers: Iterable[PaperNumber]) -> str:
    found = [ours.seeds for number in numbers for ours in (number.claimed, number.proved) if ours is not None]
    return "" if not found else str(found[0]) if len(set(found)) == 1 else f"{min(found)} to {max(found)}"


def page(paper: Paper) -> str:
    """Everything about one paper."""
    counts = paper.counts
    parts = [
        f"# {paper.title}",
        f"Of {counts.printed} printed numbers {counts.entered} have an entry and {counts.run} were run "
        f"({counts.stand_ins} more on data that stand in for the paper's): {counts.near_own} come out near the printed "
        f"ones by the paper's own accounting, {counts.near_proved} at a proved epsilon. {RULE} [Results](README.md) "
        "has the findings. This page is written by [`collect.py`](collect.py); what differs is explained in "
        "[`reasons.toml`](reasons.toml).",
        *(_section(paper, table) for table in paper.tables),
    ]
    return "\n\n".join(parts) + "\n"


def _section(paper: Paper, table: PaperTable) -> str:
    command = f"`reticent reproduce {paper.name} --{table.kind} {table.number}`"
    head = ("cell", "measure", "printed", "as claimed", "proved for it", "at proved epsilon", "epsilon", "seeds", "why")
    parts = [
        f"## {table.title}",
        "\n".join([command, *([""] if table.notes else []), *(f"- {n}" for n in table.notes)]),
    ]
    if table.numbers:
        parts.append(as_table([head, *(_line(number) for number in table.numbers)]))
    stand_ins = dict.fromkeys(number.stand_in for number in table.numbers if number.stand_in is not None)
    parts += [f"Stand-in: {text}." for text in stand_ins]
    if table.left_out:
        parts.append("\n".join(["Without an entry:", "", *(f"- {text}" for text in table.left_out)]))
    return "\n\n".join(parts)


def _line(number: PaperNumber) -> list[str]:
    claimed, proved = number.claimed, number.proved
    name = number.cell if number.stand_in is None else f"{number.cell} (stand-in)"
    return [
        name,
        number.measure,
        said(number.measure, number.printed),
        spread(number.measure, claimed),
        _epsilon(claimed),
        spread(number.measure, proved),
        _epsilon(proved),
        _seeds([number]),
        (number.why or UNEXPLAINED) if number.differs else "",
    ]


def _epsilon(ours: Ours | None) -> str:
    return "" if ours is None else "none" if ours.epsilon is None else round_up(ours.epsilon, 2)


def spread(measure: str, ours: Ours | None) -> str:
    """A mean, with half of its interval where there are seeds enough."""
    if ours is None:
        return ""
    half = (ours.spread.high - ours.spread.low) / 2
    return said(measure, ours.spread.mean) + (f" ± {said(measure, half)}" if ours.seeds > 1 else "")


def said(measure: str, value: float | None) -> str:
    """A number with the digits that its measure is worth.

    >>> said("accuracy", 97.5), said("lira.auc", 0.5), said("accuracy", None)
    ('97.50', '0.500', '')
    """
    if value is None:
        return ""
    unit = measure.endswith((".auc", ".balanced", ".oracle", ".advantage"))
    return f"{value:.3f}" if unit else f"{value:.2f}"


def as_table(rows: Iterable[Sequence[str]]) -> str:
    """Rows as a table, the first one being its head."""
    head, *body = rows
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in body)]
    return "\n".join(lines)
