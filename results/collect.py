"""Copy what runs left (results.jsonl, attacks) into this folder, and write the tables of both README.md from it.

`python results/collect.py OUT` does both; without OUT only the tables are written anew, and the pages of the papers.
What OUT has no run of stays as it was.
`python results/papers.py OUT --collect` copies the runs of the papers.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean

from reticent.experiments.measures import measure
from reticent.experiments.published import Record, read_published, slim, to_lines
from reticent.experiments.standing import standing
from reticent.experiments.tables import find_table
from reticent.report import Spread
from reticent.report.commands import trained_by
from reticent.report.contests import as_map, contests
from reticent.report.papers import Paper
from reticent.report.papers_markdown import as_table, opening, page, side_by_side
from reticent.results import Result

HERE = Path(__file__).parent
PAGES = (HERE / "README.md", HERE.parent / "README.md")
METHODS = (
    "methods-fashion-mnist",
    "methods-mnist",
    "methods-adult",
    "methods-location30",
    "dpsur-as-claimed",
    "dpsur-state-coded",
    "dpsur-state-paid",
    "imdb",
    "network",
)
CELLS = {
    "best": (str(HERE / "best.toml"), "best"),
    "ablation": (str(HERE / "ablation.toml"), "parts"),
    "handcrafted": ("handcrafted", "best"),
    "end-to-end": ("handcrafted", "best"),
    "tempered-sigmoids": ("dpsur", "2"),
    "cifar10": (str(HERE / "cifar10.toml"), "linear"),
    "dpis-batches": (str(HERE / "dpis-batches.toml"), "batches"),
}
"""Experiments by cells: the paper (or file) and table that they are from."""


STEPS = ("steps-linear", "steps-networks", "steps-dpis", "steps-stages")
"""Searches: scored on training examples that were set aside."""
DENIABILITY = (
    "accuracy",
    "rejected",
    "pooled.auc",
    "pooled.tpr_at_0.001",
    "lira.auc",
    "population.auc",
    "reference.auc",
)
"""What is told of PD-SGD's ablation."""


COMMANDS = {
    "handcrafted": 'reproduce handcrafted --table best --cells "*mnist-linear*,*mnist-cnn*" --seeds 3',
    "end-to-end": 'reproduce handcrafted --table best --cells "*mnist-end-to-end*" --seeds 3',
    "best": "reproduce results/best.toml --table best --seeds 3",
    "ablation": "reproduce results/ablation.toml --table parts --seeds 3",
    "methods-fashion-mnist": "compare --config results/methods.toml --data fashion-mnist --seeds 3",
    "methods-mnist": "compare --config results/methods.toml --data mnist --seeds 3",
    "methods-adult": "compare --config results/tables.toml --data adult --seeds 3",
    "methods-location30": "compare --config results/tables.toml --data location30 --seeds 3",
    "steps-dpis": "reproduce results/dpis-batches.toml --table steps",
    "dpis-batches": "reproduce results/dpis-batches.toml --table batches --seeds 3",
    "tempered-sigmoids": 'reproduce dpsur --table 2 --cells "*mnist-ts-eps1" --seeds 3',
    "dpsur-as-claimed": 'reproduce dpsur --table 2 --cells "mnist-dpsur*-eps1" --as-claimed --seeds 3',
    "dpsur-state-coded": "reproduce results/dpsur-state.toml --table coded --seeds 3",
    "dpsur-state-paid": "reproduce results/dpsur-state.toml --table paid --cells '*-eps1' --seeds 3",
    "deniability": "reproduce results/deniability.toml --table ablation --seeds 3",
    "steps-linear": "reproduce results/steps.toml --table linear --cells 'fashion-mnist-*-eps1-*,mnist-*-eps3-*'",
    "steps-networks": "reproduce results/steps.toml --table networks",
    "imdb": "compare --config results/imdb.toml --seeds 3",
    "steps-stages": "reproduce results/stages.toml --table steps",
    "network": "compare --config results/network.toml --seeds 3",
    "cifar10": "reproduce results/cifar10.toml --table linear --seeds 3",
    "location30": "compare --config results/location30.toml --seeds 3",
}
"""What made each file; run.sh has all of them."""


def collect(out: Path) -> None:
    """Copy the records of every experiment that is there, without paths, and the figures of the attacks."""
    for name, command in COMMANDS.items():
        folder = out / name
        records = [json.loads(path.read_text()) for path in sorted(folder.glob("runs/*/record.json"))]
        done = [record for record in records if record["status"] == "done"]
        if done:
            _keep(name, [{"command": f"reticent {command}"} | slim(record) for record in done])
    _collect_defaults(out / "defaults")
    found = [
        {"command": f"reticent attack OUT/location30/runs/{path.parents[2].name} --models 8"}
        | {"run": path.parents[2].name}
        | _attack(entry)
        for path in sorted(out.glob("location30/runs/*/private/attack/attack.json"))
        for entry in _entries(json.loads(path.read_text()))
    ]
    if found:
        (HERE / "location30-attacks.jsonl").write_text(to_lines(found))


def _collect_defaults(folder: Path) -> None:
    """The runs by the rule and by tuned settings, and, apart from them, what the search saw on examples set aside."""
    whole = [place.parent for place in sorted(folder.glob("*/complete"))]
    records = [json.loads(path.read_text()) for cell in whole for path in sorted(cell.glob("runs/*/record.json"))]
    shown = [record for record in records if record["status"] == "done" and record["label"] != "search"]
    if shown:
        lines = [{"command": trained_by(record["recipe"])} | slim(record) for record in shown]
        _keep("defaults", lines, anew={line["data"] for line in lines})  # what was tuned may be the rule's own now
        file = HERE / "defaults-search.json"
        seen = {f"{r['data']} {r['run']}": r["accuracy"] for r in records if r["label"] == "search"}
        known = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps(dict(sorted((known | seen).items())), indent=1) + "\n")


def _keep(name: str, lines: list[Record], anew: Collection[str] = ()) -> None:
    """Write the lines of a file, beside those of runs that there are no new ones of, by dataset and run.

    Of the datasets that are made `anew` no earlier line stays.
    """
    known = [line for line in read(name) if line["data"] not in anew] if (HERE / f"{name}.jsonl").exists() else []
    found = {(line["data"], line["run"]): line for line in [*known, *lines]}
    (HERE / f"{name}.jsonl").write_text(to_lines(line for _, line in sorted(found.items())))


def _entries(answer: Record) -> list[Record]:
    return [*answer["attacks"], answer["pooled"], answer["blind"]]


def _attack(entry: Record) -> Record:
    rates = {f"tpr_at_{rate['fpr']:g}": rate["tpr"] for rate in entry["at_low_rates"]}
    kept = {name: entry[name] for name in ("attack", "auc", "auc_low", "auc_high")}
    return kept | {"balanced": entry["heldout"]["balanced"]} | rates


# -- tables ------------------------------------------------------------------------------------------------------------


def tables() -> dict[str, str]:
    """Every table of the pages by its name."""
    found = {}
    for name in (*METHODS, "location30"):
        if (HERE / f"{name}.jsonl").exists():
            found[name] = as_table(_compared(read(name)))
    for name, (paper, number) in CELLS.items():
        if (HERE / f"{name}.jsonl").exists():
            printed = {cell.name: cell.printed.get("accuracy") for cell in find_table(paper, number).cells}
            found[name] = as_table(_cells(read(name), printed))
    if (HERE / "defaults.jsonl").exists():
        found["defaults"] = as_table(_defaults(read("defaults")))
    found["headline"] = as_table(_headline(read("best")))
    if (HERE / "location30-attacks.jsonl").exists():
        found["location30-attacks"] = as_table(_attacks(read("location30-attacks")))
    if (HERE / "deniability.jsonl").exists():
        found["deniability"] = as_table(_measured(read("deniability"), DENIABILITY))
    for name in STEPS:
        if (HERE / f"{name}.jsonl").exists():
            found[name] = as_table(_steps(read(name)))
    found["map"] = as_table(as_map(contests(read_published(HERE))))
    found["papers"] = opening(papers())
    for paper in papers():
        found |= {f"{paper.name} {table.number}": side_by_side(table) for table in paper.tables if table.main}
    return found


@cache
def papers() -> list[Paper]:
    """Every paper, beside what the records hold of it."""
    return standing(HERE)


def pages() -> dict[Path, str]:
    """The page of each paper, which nobody writes by hand."""
    return {HERE / f"{paper.name}.md": page(paper) for paper in papers()}


def read(name: str) -> list[Record]:
    """The lines of one of the files here."""
    return [json.loads(line) for line in (HERE / f"{name}.jsonl").read_text().splitlines()]


def _compared(records: list[Record]) -> Iterator[Sequence[str]]:
    """One row for each method and budget, with its gain over DP-SGD seed by seed."""
    yield "method", "proved epsilon", "as claimed", "accuracy", "to DP-SGD", "seeds", "core-minutes"
    base = {(r["target_epsilon"], r["seed"]): r["accuracy"] for r in records if r["label"] == "dpsgd"}
    for group in _groups(records):
        first = group[0]
        gains = [
            100 * (r["accuracy"] - base[r["target_epsilon"], r["seed"]])
            for r in group
            if (r["target_epsilon"], r["seed"]) in base
        ]
        yield (
            "no privacy" if first["kind"] == "plain" else first["label"],
            _epsilon(group, "epsilon"),
            _epsilon(group, "claimed_epsilon"),
            _accuracy(group),
            _spread(gains, "+.2f") if gains and first["label"] != "dpsgd" and first["kind"] != "plain" else "",
            str(len(group)),
            _minutes(group),
        )


def _cells(records: list[Record], printed: dict[str, float | None]) -> Iterator[Sequence[str]]:
    """One row for each cell of a table, beside what is printed there."""
    yield "cell", "printed", "ours", "proved epsilon", "seeds", "core-minutes"
    for group in sorted(_groups(records), key=lambda group: str(group[0]["label"])):
        budget = group[0]["target_epsilon"]
        cell = f"{group[0]['label']}" + ("" if budget is None else f"-eps{budget:g}")
        figures = (_accuracy(group), _epsilon(group, "epsilon"), str(len(group)), _minutes(group))
        there = printed.get(cell)
        yield cell, "" if there is None else f"{there:g}", *figures


def _headline(records: list[Record]) -> Iterator[Sequence[str]]:
    """The best, one row a dataset and one column a budget."""
    private = [record for record in records if record["target_epsilon"] is not None]
    groups = {(str(group[0]["label"]), group[0]["target_epsilon"]): group for group in _groups(private)}
    budgets = sorted({epsilon for _, epsilon in groups})
    yield "proved epsilon", *(f"{epsilon:g}" for epsilon in budgets), "core-minutes a run"
    for label in sorted({label for label, _ in groups}, reverse=True):
        found = [groups.get((label, epsilon), []) for epsilon in budgets]
        most = max(float(_minutes(group)) for group in found if group)
        yield label, *(f"{_accuracy(group)} %" if group else "" for group in found), f"at most {most or 0.1:g}"


def _defaults(records: list[Record]) -> Iterator[Sequence[str]]:
    """One row a dataset: what the rule gets, and what tuned settings do."""
    yield "dataset", "network", "epsilon", "by the rule", "tuned", "tuned settings", "rounds", "core-minutes"
    for data in dict.fromkeys(record["data"] for record in records):
        rule, tuned = ([r for r in records if (r["data"], r["label"]) == (data, label)] for label in ("rule", "tuned"))
        said = (tuned or rule)[0]["recipe"]
        yield (
            data,
            str(rule[0]["model"]),
            _epsilon(rule, "epsilon"),
            _accuracy(rule),
            _accuracy(tuned) if tuned else "the same",
            f"lr {said['lr']:.3g}, clip {said['max_grad_norm']:g}" if tuned else "the rule's own",
            str(rule[0]["rounds"]),
            _minutes(rule),
        )


def _measured(records: list[Record], names: Sequence[str]) -> Iterator[Sequence[str]]:
    """One row for each kind of run, with what its attacks measured."""
    yield "run", *names, "seeds"
    rows: dict[str, list[Record]] = {}
    for record in records:
        rows.setdefault(record["run"].rsplit("-seed", 1)[0], []).append(record)
    for name, group in rows.items():
        results = [Result.from_json(record) for record in group]
        values = ([measure(what, result) for result in results] for what in names)
        shown = (
            "" if None in found else _spread(found, ".3f" if what.endswith(".auc") else ".2f")
            for what, found in zip(names, values, strict=True)
        )
        yield name, *shown, str(len(group))


def _steps(records: list[Record]) -> Iterator[Sequence[str]]:
    """One row for each method and budget: what every step got, the best in bold."""
    yield "row", "epsilon", "step: accuracy on training examples set aside", "core-minutes"
    for group in _groups(records):
        scores = {record["recipe"]["lr"]: 100 * record["accuracy"] for record in group}
        best = max(scores, key=scores.__getitem__)
        shown = (f"**{lr:g}: {got:.2f}**" if lr == best else f"{lr:g}: {got:.2f}" for lr, got in sorted(scores.items()))
        yield group[0]["label"], f"{group[0]['target_epsilon']:g}", ", ".join(shown), _minutes(group)


def _attacks(entries: list[Record]) -> Iterator[Sequence[str]]:
    runs = list(dict.fromkeys(entry["run"] for entry in entries))
    yield "attack", *(run.removesuffix("-seed0") for run in runs)
    for attack in dict.fromkeys(entry["attack"] for entry in entries):
        by_run = {entry["run"]: entry for entry in entries if entry["attack"] == attack}
        yield attack, *(f"{by_run[run]['auc']:.3f}" if run in by_run else "" for run in runs)


def _groups(records: list[Record]) -> list[list[Record]]:
    groups: dict[tuple[str, float | None], list[Record]] = {}
    for record in sorted(records, key=lambda r: (r["target_epsilon"] or 0, r["label"] != "dpsgd", r["label"])):
        groups.setdefault((record["label"], record["target_epsilon"]), []).append(record)
    return list(groups.values())


def _accuracy(group: list[Record]) -> str:
    return _spread([100 * record["accuracy"] for record in group], ".2f")


def _spread(values: list[float], form: str) -> str:
    """A mean, and what the seeds say about it: half of Student's interval from three on."""
    spread = Spread.of(values)
    half = f" ± {(spread.high - spread.low) / 2:{form.lstrip('+')}}" if len(values) > 1 else ""
    return f"{spread.mean:{form}}{half}"


def _epsilon(group: list[Record], name: str) -> str:
    values = [record[name] for record in group if record[name] is not None]
    return f"{max(values):.2f}" if values else "none" if name == "epsilon" else ""


def _minutes(group: list[Record]) -> str:
    return f"{fmean(record['cpu_seconds'] for record in group) / 60:.1f}"


def with_tables(text: str) -> str:
    """The text with the table after every `<!-- table: NAME -->` written anew."""
    for name, table in tables().items():
        pattern = rf"(<!-- table: {re.escape(name)} -->\n)(?:\|[^\n]*\n)*"
        text = re.sub(pattern, lambda found, table=table: f"{found[1]}{table}\n", text)
    return text


if __name__ == "__main__":
    if len(sys.argv) > 1:
        collect(Path(sys.argv[1]))
    for place in PAGES:
        place.write_text(with_tables(place.read_text()))
    for place, text in pages().items():
        place.write_text(text)
