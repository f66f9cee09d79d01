"""The page: one self-contained HTML file, made of the results, a template, and scripts that are inlined into it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from reticent.accounting.guarantee import round_up
from reticent.errors import DataError
from reticent.files import make_folder, replace_file
from reticent.report.choice import picking
from reticent.report.commands import flat
from reticent.report.facts import alone, facts, title
from reticent.report.limits import caught_at_most, right_at_most
from reticent.report.names import class_name, printed
from reticent.report.publishing import publishable, unpublishable
from reticent.report.results import Results, read
from reticent.report.statement import make_statement, percent
from reticent.report.summary import Row, summarise
from reticent.report.verdict import verdicts
from reticent.results import Result

HERE = files("reticent.report")
SCRIPTS = ("theme.js", "tables.js", "drawing.js", "charts.js", "single.js", "page.js")


def write_page(
    folder: Path, page: Path | None = None, *, private: bool = False, without_privacy: float | None = None
) -> Path:
    """Write report.html into a folder with results, or to `page`; `private` adds private diagnostics, and a warning."""
    found = read(folder, private=private)
    return write(found, page or folder / "report.html", private=private, without_privacy=without_privacy)


def write(results: Results, page: Path, *, private: bool = False, without_privacy: float | None = None) -> Path:
    """Write the page of some results; `without_privacy` is an accuracy that a single run is held against."""
    return keep(render(results, without_privacy), page, private=private)


def keep(text: str, page: Path, *, private: bool = False) -> Path:
    """Put a page in its place, whole or not at all."""
    make_folder(page.parent)
    replace_file(page, text.encode(), mode=0o600 if private else 0o644)
    return page


def render(results: Results, without_privacy: float | None = None) -> str:
    """The page of some results: of one model, if there is but one, and else a comparison."""
    rows = summarise(results.runs)
    firsts = {(run.label, run.target_epsilon): run for run in reversed(results.done)}
    private_first = sorted(rows, key=lambda row: row.kind == "plain")
    ordered = [firsts[row.label, row.target_epsilon] for row in private_first if row.seeds]
    statements = [make_statement(run, results, rows) for run in ordered]
    single = results.done[0] if len(results.runs) == len(results.done) == 1 else None
    drawn = facts(results, rows)
    if single is not None:
        drawn["run"] = alone(single, without_privacy)
        drawn["points"] = []  # one point is no chart
    return filled(
        "page.html" if single is None else "run.html",
        SCRIPTS,
        drawn,
        results=results,
        **(_comparison(results, rows) if single is None else _single(single, results, without_privacy)),
        rocs=any(entry.roc for entry in results.attacks),
        histograms=any(entry.histogram for entry in results.attacks),
        spent=bool(drawn["spending"]),
        judged=bool(drawn["classes"]),
        sentences=_sentences(results),
        budgets=sorted({(row.target_epsilon, row.delta) for row in rows if row.target_epsilon and row.delta}),
        statements=statements,
        about=_about(results),
        said=embedded([said.to_json() for said in statements]),
    )


def filled(template: str, scripts: Sequence[str], facts: object, **values: object) -> str:
    """A template with these values, and with everything inlined that it needs to be looked at alone."""
    return (
        _environment()
        .get_template(template)
        .render(
            **values,
            facts=embedded(facts),
            style=_asset("style.css"),
            scripts=[_asset(name) for name in scripts],
            libraries=_libraries(),
        )
    )


def _comparison(results: Results, rows: list[Row]) -> dict[str, object]:
    """What only the page of a comparison says."""
    return {
        "rows": rows,
        "plain": next((row for row in rows if row.kind == "plain" and row.accuracy), None),
        "commonest": next((run.commonest for run in results.done if run.commonest), None),
        "verdicts": verdicts(rows),
        "picking": picking(results.runs),
        "claims": any(row.claimed_epsilon is not None for row in rows),
        "measured": any(row.accuracy for row in rows),
    }


def _single(run: Result, results: Results, without_privacy: float | None) -> dict[str, object]:
    """What only the page of one model says."""
    worst = min(run.classes or (), key=lambda entry: entry.accuracy, default=None)
    return {
        "run": run,
        "without_privacy": without_privacy,
        "worst": None if worst is None else (class_name(run, worst.number), worst),
        "audited": next((entry for entry in results.audits if entry.sentence), None),
        "published": publishable(run),
        "kept": unpublishable(run, results),
        "settings": {
            name: value
            for name, value in flat(run.recipe).items()
            if value not in (None, False) and name != "noise_multiplier"
        },
    }


def _sentences(results: Results) -> dict[str, str]:
    """The verdict of the attacks on each model that has one."""
    return {title(entry, results): entry.sentence for entry in results.attacks if entry.sentence}


def _about(results: Results) -> Result:
    """What all runs have in common, as their first says it."""
    if not results.runs:
        raise DataError("there is no run to be shown: a page needs one, if only a failed one")
    return (results.done or results.runs)[0]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(lambda name: (HERE / "assets" / name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "printed": printed,
        "percent": percent,
        "round_up": round_up,
        "points": points,
        "caught_at_most": lambda epsilon, delta: caught_at_most(0.01, epsilon, delta),
        "right_at_most": right_at_most,
        "attacked": title,
    }
    return environment


def points(share: float) -> str:
    """A difference of shares in points, with its sign.

    >>> points(0.0123), points(-0.05), points(-1e-9)
    ('+1.2', '−5.0', '0.0')
    """
    said = f"{100 * share:+.1f}"
    return "0.0" if said in ("+0.0", "-0.0") else said.replace("-", "−")


def embedded(data: object) -> Markup:
    """JSON that can stand inside a script element: nothing in it ends the element.

    >>> embedded("</script>")
    Markup('"\\\\u003c/script>"')
    """
    return Markup(json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


@cache
def _asset(name: str) -> Markup:
    return Markup((HERE / "assets" / name).read_text(encoding="utf-8"))


@cache
def _libraries() -> list[dict[str, str]]:
    """The charting libraries, as they were published, each with its licence."""
    vendor = HERE / "vendor"
    listed: list[dict[str, str]] = tomllib.loads((vendor / "vendor.toml").read_text())["library"]
    return [library | {"code": Markup((vendor / library["file"]).read_text(encoding="utf-8"))} for library in listed]
