"""The page of the papers: what it says, and what a real browser draws of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from reticent.cli import app
from reticent.report.contests import Contest
from reticent.report.papers import Ours, Paper, PaperNumber, PaperTable
from reticent.report.papers_page import render_papers, write_papers
from reticent.report.summary import Spread

EVIL = "</script><script>window.hacked = true</script>"


def ours(*values: float, epsilon: float | None = 1.0) -> Ours:
    return Ours(spread=Spread.of(values), seeds=len(values), epsilon=epsilon, claimed_epsilon=None)


def number(row: str, at: float, printed: float | None, proved: Ours | None, **changes: Any) -> PaperNumber:
    return PaperNumber(
        **{
            "row": row,
            "column": f"eps{at:g}",
            "cell": f"{row}-eps{at:g}",
            "data": "digits",
            "measure": "accuracy",
            "printed": printed,
            "proved": proved,
            "claimed": None,
            "has_claim": False,
            "at": at,
            "changing": "epsilon",
            "curve": (),
            "stand_in": None,
            "beside": None,
            "why": None,
        }
        | changes
    )


def table(kind: str, name: str, numbers: list[PaperNumber], **changes: Any) -> PaperTable:
    whole = PaperTable(
        kind=kind,
        number=name,
        title=f"{kind.title()} {name}: {EVIL}",
        main=kind == "table",
        notes=(),
        printed=len(numbers),
        entered=len(numbers),
        numbers=tuple(numbers),
        left_out=(),
    )
    return replace(whole, **changes)


def papers() -> list[Paper]:
    """A table, a plot of curves, a trade-off, and a paper of which nothing was run."""
    main = [
        number("mine", 1, 90.0, ours(90.5, 89.9, 90.2), claimed=ours(91.0), has_claim=True),
        number("mine", 3, 93.0, ours(92.5, 93.1, 92.8), claimed=ours(93.0), has_claim=True),
        number("theirs", 1, 88.0, ours(80.0)),
        number("theirs", 3, 89.0, None),
    ]
    curve = ((0.5, 50.0), (1.0, 70.0), (2.0, 80.0))
    plots = [number("mine", 2, None, ours(80.0), curve=curve), number("theirs", 2, None, ours(79.0), curve=curve[1:])]
    leaks = []
    for at, accuracy, auc in ((1, 80.0, 0.55), (2, 85.0, 0.6)):
        leaks.append(number("mine", at, accuracy, ours(accuracy - 1)))
        leaks.append(number("mine", at, auc, ours(auc), measure="lira.auc"))
    first = Paper("mine", "Mine", (table("table", "1", main), table("figure", "2", plots), table("figure", "3", leaks)))
    return [first, Paper("other", "Other", (table("table", "1", [number("none", 1, 90.0, None)]),))]


def wait(until: Callable[[], Any], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, "the page did not get there"
        time.sleep(0.02)


def test_it_says_what_was_run_and_what_came_of_it() -> None:
    text = render_papers(papers())
    assert "7 of 11 printed numbers were run again" in text
    assert "90.00 / 91.00 / 90.20" in text
    assert "None of its numbers has been run yet" in text
    assert EVIL not in text


def test_it_shows_which_method_wins_where() -> None:
    gains = {"dpsur": Spread.of([-0.4, -0.5, -0.6]), "dpis": Spread.of([-0.1, 0.0, 0.2])}
    one = Contest("digits", "linear", 1.0, "dpsgd", Spread.of([90.0, 90.0, 90.1]), gains)
    text = render_papers(papers(), [one])
    assert '<td class="loses" title="loses: from -0.75 to -0.25">-0.50</td>' in text
    assert '<td class="ties"' in text
    assert 'id="map"' not in render_papers(papers())


def test_a_browser_draws_every_chart_and_complains_of_nothing(browser: Any, tmp_path: Path) -> None:
    browser.get_log("browser")
    browser.get(write_papers(papers(), tmp_path / "report.html").as_uri())
    drawn = "return document.querySelectorAll('.chart svg').length"
    wait(lambda: browser.execute_script(drawn) == 6)
    assert not browser.execute_script("return document.querySelector('.empty') || window.hacked")
    dots = "return document.querySelectorAll('#chart-mine-table-1-digits-accuracy [aria-label=dot] path').length"
    circles = dots.replace(" path'", " circle'")
    shown = browser.execute_script(dots) + browser.execute_script(circles)
    assert shown == 4 + 3 + 2, "printed, proved and claimed"
    browser.execute_script("document.querySelector('#chart-mine-table-1-digits-accuracy-legend button').click()")
    left = browser.execute_script(dots) + browser.execute_script(circles)
    assert left == 3, "one row is hidden"
    lines = "return document.querySelectorAll('#chart-mine-figure-2-digits-curves [aria-label=line] path').length"
    assert browser.execute_script(lines) == 2
    assert browser.get_log("browser") == []


def test_the_command_writes_the_page_of_a_folder_with_records_of_papers(tmp_path: Path) -> None:
    (tmp_path / "papers.jsonl").touch()
    answer = CliRunner().invoke(app, ["report", str(tmp_path), "--json"])
    told = json.loads(answer.stdout)
    assert told["run"] == 0 < told["entered"] <= told["printed"]
    assert (tmp_path / "report.html").stat().st_size == told["bytes"]
