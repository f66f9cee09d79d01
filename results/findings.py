"""Hold the sentences of the pages against the records: `python results/findings.py` says which disagree.

findings.toml has sentences as templates. What stands in braces is asked of the records:

    {FILE LABEL EPSILON WHAT FORMAT}   of the runs in FILE.jsonl; EPSILON is - where there is none, and WHAT is
                                       accuracy, half (of its interval), least or most
                                       (percent), gain or loss (points to DP-SGD, seed by seed),
                                       epsilon, claimed or minutes
    {attack FILE RUN ATTACK FORMAT}    the AUC of an attack
    {run FILE RUN MEASURE FORMAT}      what one run and its attacks measured
    {mean FILE RUN MEASURE FORMAT}     the mean over seeds of what runs and their attacks measured (pooled.auc)
    {printed PAPER PLACE CELL FORMAT}  what a paper prints (PLACE: table-2); claimed or proved: what we got there
    {A minus B FORMAT}                 a difference
    {count PAPER WHAT}                 how many of a paper's numbers are printed, entered, run, near_own ...

FORMAT is as in Python (.1f). A filled template must stand in its page, word by word.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from reticent.experiments.measures import measure
from reticent.experiments.standing import standing
from reticent.report import Spread
from reticent.report.papers import Paper, PaperNumber
from reticent.results import Result

HERE = Path(__file__).parent
NUMBER = re.compile(r"\d+\.\d+|\d+(?:,\d+)?(?= points| %)|\d+ to \d+")
"""What counts as a number that somebody measured."""


def disagreements() -> list[str]:
    """Sentences that do not stand in their page as the records have them, and numbers that nobody answers for."""
    said = tomllib.loads((HERE / "findings.toml").read_text())
    found, pages = [], dict[str, str]()
    for finding in said["finding"]:
        page = finding.get("page", "results/README.md")
        pages.setdefault(page, one_line(_of_page(page)))
        sentence = one_line(filled(finding["says"]))
        if sentence not in pages[page]:
            found.append(f"{page} does not say what the records do: {sentence}")
        pages[page] = pages[page].replace(sentence, "")
    left = pages["results/README.md"]
    for known in said["known"]:
        left = left.replace(known, "")
    return found + [f"no record is asked for {number} in the findings" for number in NUMBER.findall(left)]


def _of_page(name: str) -> str:
    """A page; of the results only the findings, where every number must be answered for."""
    text = (HERE.parent / name).read_text()
    return text.partition("## What we found")[2].partition("\n## ")[0] if name == "results/README.md" else text


def one_line(text: str) -> str:
    """The text without its line breaks."""
    return re.sub(r"\s+", " ", text).strip()


def filled(template: str) -> str:
    """The template with the records' numbers."""
    return re.sub(r"\{([^}]*)\}", lambda query: answer(query[1].split()), template)


def answer(words: list[str]) -> str:
    """What the records say to a query."""
    if words[0] == "count":
        return str(getattr(_papers()[words[1]].counts, words[2]))
    *query, form = words
    if "minus" in query:
        middle = query.index("minus")
        value = _value(query[:middle]) - _value(query[middle + 1 :])
    else:
        value = _value(query)
    return f"{value + 0.0:{form}}"


def _value(query: list[str]) -> float:
    match query:
        case ["attack", file, run, attack]:
            return next(r["auc"] for r in _records(file) if (r["run"], r["attack"]) == (run, attack))
        case [("mean" | "run"), file, name, what]:
            some = [Result.from_json(r) for r in _records(file) if name in (r["run"], r["run"].rsplit("-seed", 1)[0])]
            return fmean(value for result in some if (value := measure(what, result)) is not None)
        case [("printed" | "claimed" | "proved") as which, paper, place, cell]:
            number = _number(paper, place, cell)
            ours = {"claimed": number.claimed, "proved": number.proved}.get(which)
            value = number.printed if which == "printed" else None if ours is None else ours.spread.mean
            assert value is not None, f"{cell} of {paper} has no such number"
            return value
        case [file, label, epsilon, what]:
            return _of_runs(file, label, None if epsilon == "-" else float(epsilon), what)
    raise ValueError(f"not a query: {' '.join(query)}")


def _of_runs(file: str, label: str, epsilon: float | None, what: str) -> float:
    runs = [r for r in _records(file) if (r["label"], r["target_epsilon"]) == (label, epsilon)]
    accuracies = {run["seed"]: 100 * run["accuracy"] for run in runs}
    if what in ("gain", "loss"):
        base = {r["seed"]: 100 * r["accuracy"] for r in _records(file) if _is_base(r, epsilon)}
        gain = fmean(accuracies[seed] - base[seed] for seed in accuracies)
        return gain if what == "gain" else -gain
    return {
        "accuracy": lambda: fmean(accuracies.values()),
        "half": lambda: (spread := Spread.of(list(accuracies.values()))).high - spread.mean,
        "least": lambda: min(accuracies.values()),
        "most": lambda: max(accuracies.values()),
        "epsilon": lambda: max(run["epsilon"] for run in runs),
        "claimed": lambda: max(run["claimed_epsilon"] for run in runs),
        "minutes": lambda: fmean(run["cpu_seconds"] for run in runs) / 60,
    }[what]()


def _is_base(record: dict[str, Any], epsilon: float | None) -> bool:
    return (record["label"], record["target_epsilon"]) == ("dpsgd", epsilon)


@cache
def _records(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / f"{file}.jsonl").read_text().splitlines()]


@cache
def _papers() -> dict[str, Paper]:
    return {paper.name: paper for paper in standing(HERE)}


def _number(paper: str, place: str, cell: str) -> PaperNumber:
    numbers = (n for table in _papers()[paper].tables if f"{table.kind}-{table.number}" == place for n in table.numbers)
    return next(number for number in numbers if number.cell == cell and number.measure == "accuracy")


if __name__ == "__main__":
    sys.exit("\n".join(disagreements()) or None)
