"""The papers as a page: the opening table, the main tables, and charts of whatever was run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from reticent.report.contests import Contest, methods_of, verdict
from reticent.report.page import embedded, filled, keep
from reticent.report.papers import RULE, Ours, Paper, PaperCounts, PaperNumber, PaperTable
from reticent.report.papers_markdown import laid_out, said

SCRIPTS = ("theme.js", "tables.js", "drawing.js", "papers.js")
Plain = dict[str, object]


def write_papers(papers: Sequence[Paper], page: Path, contests: Sequence[Contest] = ()) -> Path:
    """Write the page of some papers, and of comparisons of their methods."""
    return keep(render_papers(papers, contests), page)


def render_papers(papers: Sequence[Paper], contests: Sequence[Contest] = ()) -> str:
    """The page of some papers: one file that asks nothing of the network."""
    drawn = {(paper.name, table.name): list(_charts(paper, table)) for paper in papers for table in paper.tables}
    return filled(
        "papers.html",
        SCRIPTS,
        {"series": [], "charts": [chart for charts in drawn.values() for chart in charts]},
        papers=papers,
        contests=contests,
        methods=methods_of(contests),
        verdict=verdict,
        total=PaperCounts.added([paper.counts for paper in papers]),
        rule=RULE,
        charts=drawn,
        laid_out=laid_out,
        results={"private": []},
        said=embedded([]),
    )


# -- charts ------------------------------------------------------------------------------------------------------------


def _charts(paper: Paper, table: PaperTable) -> Iterator[Plain]:
    """A chart for each dataset and measure of which something was run; curves and trade-offs have their own."""
    about = f"{paper.name}-{table.kind}-{table.number}"
    for data in dict.fromkeys(number.data for number in table.numbers):
        here = [number for number in table.numbers if number.data == data]
        for measure in dict.fromkeys(number.measure for number in here):
            shown = [number for number in here if number.measure == measure]
            if sum(number.is_run for number in shown) > 1:
                yield _levels(f"{about}-{data}-{measure}", f"{table.name}, {data}: {measure}", shown)
        curves = [number for number in here if len(number.curve) > 1]
        if curves:
            yield _curves(f"{about}-{data}-curves", f"{table.name}, {data}: accuracy over epsilon spent", curves)
        if table.kind == "figure" and len(pairs := list(_pairs(here))) > 1:
            yield _trade_off(f"{about}-{data}-trade-off", f"{table.name}, {data}: accuracy against attack", pairs)


def _id(text: str) -> str:
    return "chart-" + "".join(letter if letter.isalnum() else "-" for letter in text)


def _levels(about: str, title: str, numbers: Sequence[PaperNumber]) -> Plain:
    """Numbers by the setting that changes along the rows: printed, as claimed and proved."""
    by_number = all(number.at is not None for number in numbers)
    places = sorted({(number.at or 0.0) for number in numbers}) if by_number else []
    names = [f"{place:g}" for place in places] or list(dict.fromkeys(number.column or "-" for number in numbers))
    changing = next((number.changing for number in numbers if number.changing), None)
    return {
        "id": _id(about),
        "kind": "levels",
        "title": title,
        "measure": numbers[0].measure,
        "x": (changing or "column").replace("_", " ") if by_number else "",
        "places": names,
        "rows": list(dict.fromkeys(number.row for number in numbers)),
        "points": [
            {
                "row": number.row,
                "place": f"{number.at:g}" if by_number else number.column or "-",
                "printed": number.printed if number.stand_in is None else None,
                "claimed": _point(number.claimed),
                "proved": _point(number.proved),
                "words": _words(number),
            }
            for number in numbers
        ],
    }


def _point(ours: Ours | None) -> list[float] | None:
    return None if ours is None else [ours.spread.mean, ours.spread.low, ours.spread.high]


def _words(number: PaperNumber) -> str:
    """What hovering tells."""
    lines = [number.cell]
    if number.printed is not None:
        lines.append(f"printed {said(number.measure, number.printed)}")
    for ours, how in ((number.claimed, "as claimed"), (number.proved, "proved")):
        if ours is not None:
            epsilon = "no epsilon proved" if ours.epsilon is None else f"epsilon {ours.epsilon:.2f} proved"
            seeds = f"{ours.seeds} seed{'s' * (ours.seeds > 1)}"
            lines.append(f"{how}: {said(number.measure, ours.spread.mean)} ({epsilon}, {seeds})")
    return "\n".join(lines + ([f"stand-in: {number.stand_in}"] if number.stand_in else []))


def _curves(about: str, title: str, numbers: Sequence[PaperNumber]) -> Plain:
    rows = [number.cell for number in numbers]
    curves = [{"row": number.cell, "points": [list(point) for point in number.curve]} for number in numbers]
    return {"id": _id(about), "kind": "curves", "title": title, "rows": rows, "curves": curves}


def _pairs(numbers: Sequence[PaperNumber]) -> Iterator[tuple[PaperNumber, PaperNumber]]:
    """Accuracy and the AUC of an attack on the same runs."""
    leaks = {number.cell: number for number in numbers if number.measure.endswith(".auc") and number.is_run}
    for number in numbers:
        if number.measure == "accuracy" and number.is_run and number.cell in leaks:
            yield number, leaks[number.cell]


def _trade_off(about: str, title: str, pairs: Sequence[tuple[PaperNumber, PaperNumber]]) -> Plain:
    points = []
    for kept, leaked in pairs:
        ours = (leaked.own or leaked.proved, kept.own or kept.proved)
        assert ours[0] is not None
        assert ours[1] is not None
        printed = None if None in (leaked.printed, kept.printed) else [leaked.printed, kept.printed]
        x, y = ours[0].spread.mean, ours[1].spread.mean
        words = f"{kept.cell}\naccuracy {said('accuracy', y)}\n{leaked.measure} {said(leaked.measure, x)}"
        points.append({"row": kept.row, "ours": [x, y], "printed": printed, "words": words})
    rows = list(dict.fromkeys(kept.row for kept, _ in pairs))
    return {"id": _id(about), "kind": "trade-off", "title": title, "rows": rows, "points": points}
