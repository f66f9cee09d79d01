"""`reticent report`: the page of a folder with results."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Option


def report(
    folder: Annotated[
        Path, Argument(help="A folder that `compare`, `train` or rt.fit wrote, or with records of papers (results/).")
    ],
    without_privacy: Annotated[
        float | None,
        Option(help="Accuracy of the same model trained plainly, to hold a single run against.", min=0.0, max=1.0),
    ] = None,
    private: Annotated[
        bool, Option("--private", help="Show private diagnostics too; the page says so and must be kept secret.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Write report.html: one file with charts, tables and the privacy statement, that needs no network."""
    from reticent.experiments.published import PAPERS
    from reticent.report import read, write_page

    if (folder / PAPERS).exists():
        print(_papers(folder, as_json))
        return
    page = write_page(folder, private=private, without_privacy=without_privacy)
    results, size = read(folder), page.stat().st_size
    told = f"{len(results.runs)} run{'s' * (len(results.runs) != 1)}"
    answer = {
        "page": str(page),
        "bytes": size,
        "runs": len(results.runs),
        "failed": len(results.failed),
        "attacks": len(results.attacks),
        "audits": len(results.audits),
        "private": private,
    }
    print(json.dumps(answer) if as_json else f"{page} ({told}, {size / 1e6:.1f} MB)")


def _papers(folder: Path, as_json: bool) -> str:
    """The page of the papers whose records a folder holds."""
    from reticent.experiments.published import read_published
    from reticent.experiments.standing import standing
    from reticent.report.contests import contests
    from reticent.report.papers import PaperCounts
    from reticent.report.papers_page import write_papers

    papers = standing(folder)
    page = write_papers(papers, folder / "report.html", contests(read_published(folder)))
    counts = PaperCounts.added([paper.counts for paper in papers])
    if as_json:
        return json.dumps({"page": str(page), "bytes": page.stat().st_size, "papers": len(papers), **asdict(counts)})
    return f"{page} ({len(papers)} papers, {counts.run} of {counts.printed} numbers run)"
