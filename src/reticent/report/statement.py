"""The privacy statement: what is promised about a model, to whom, and what is not, in plain words."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from reticent.accounting import Guarantee
from reticent.accounting.adjacency import in_words
from reticent.accounting.guarantee import round_up
from reticent.report.commands import repeated
from reticent.report.entries import AttackEntry, AuditEntry, FoundAt
from reticent.report.limits import caught_at_most, right_at_most
from reticent.report.names import class_name, printed
from reticent.report.results import Results
from reticent.report.summary import BASELINE, Row, Spread
from reticent.results import Result

Sentences = list[str]
E = TypeVar("E", AttackEntry, AuditEntry)


@dataclass(frozen=True)
class Statement:
    """One model's statement: a headline, and fifteen fields of sentences."""

    title: str
    run: str
    status: str
    headline: str
    fields: dict[str, Sentences] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """The statement as plain data."""
        return {"title": self.title, "run": self.run, "status": self.status, "headline": self.headline, **self.fields}


def make_statement(run: Result, results: Results, rows: list[Row]) -> Statement:
    """The statement of one finished run, with what the other results say about it."""
    guarantee = run.guarantee
    fields = {
        "Guarantee": _guarantee(run, guarantee),
        "Kind of privacy": _kind(guarantee),
        "Who is protected": _unit(guarantee),
        "Who is trusted": _trust(guarantee),
        "What is covered, and what is not": _coverage(run, guarantee, results),
        "Mechanism": _mechanism(run),
        "Accountant": _accountant(run, guarantee),
        "Status": [_status(guarantee)],
        "Audit": _audit(run, results),
        "Attacks": _attacks(run, results),
        "Use": _use(run, rows),
        "Implementation": _implementation(run, guarantee),
        "Data": ["How the data were collected, who may read them and when they are deleted: for their holder to say."],
        "To repeat it": _repeat(run),
        "Limits, in plain words": _limits(guarantee),
    }
    title = printed(run.label) + (f" at epsilon {run.target_epsilon:g}" if run.target_epsilon else "")
    return Statement(title, run.run, guarantee.status, _headline(run, guarantee), fields)


def percent(share: float, digits: int = 1) -> str:
    """A share in print.

    >>> percent(0.0272)
    '2.7 %'
    """
    return f"{100 * share:.{digits}f} %"


def _finite(guarantee: Guarantee) -> bool:
    return guarantee.status != "none" and math.isfinite(guarantee.epsilon)


def _headline(run: Result, guarantee: Guarantee) -> str:
    if not _finite(guarantee):
        return f"This model comes with no differential privacy: {guarantee.why or 'nothing is proved'}."
    share = caught_at_most(0.01, guarantee.epsilon, guarantee.delta)
    caught = percent(share)
    if share > 0.9:
        return (
            "The guarantee of this model is too weak to rely on: an attacker who wants to know whether one "
            f"{guarantee.unit} was used, and accepts 1 % false alarms, may find up to {caught} of those that were."
        )
    unit = guarantee.unit
    of = f"any one of the {run.examples:,} training {unit}s" if run.examples else f"any one training {unit}"
    other = "another" if guarantee.adjacency == "replace" else "left out"
    return (
        f"Whoever sees this model learns nearly the same as if {of} had been {other}. An attacker who wants to know "
        f"whether one {unit} was used, and accepts 1 % false alarms, finds at most {caught} of those that were."
    )


def _guarantee(run: Result, guarantee: Guarantee) -> Sentences:
    if not _finite(guarantee):
        return [f"{guarantee}."]
    said = [f"{guarantee}."]
    if run.examples:
        said.append(f"Delta is {guarantee.delta * run.examples:.2g} of one in {run.examples:,} {guarantee.unit}s.")
    found = {"loss distributions (PLD)": guarantee.pld, "Renyi divergences (RDP)": guarantee.rdp}
    said += [f"By {name}: epsilon {round_up(value)}." for name, value in found.items() if value is not None]
    if guarantee.as_claimed:
        number = round_up(run.claimed_epsilon) if run.claimed_epsilon is not None else "infinite"
        how = "refuted" if guarantee.as_claimed.get("refuted") else "not proved"
        said.append(f"As claimed by the paper, {how}: epsilon {number}.")
    return said


def _kind(guarantee: Guarantee) -> Sentences:
    if not _finite(guarantee):
        return ["None."]
    differ = in_words(guarantee.adjacency, guarantee.unit)
    return [f"(epsilon, delta)-differential privacy; neighbouring data sets differ by this: {differ}."]


def _unit(guarantee: Guarantee) -> Sentences:
    if not _finite(guarantee):
        return ["Nobody, provably."]
    if guarantee.unit == "person":
        return ["One person: all rows of the training data that are theirs, however many."]
    return [
        "One example (one row of the training data).",
        "Somebody with several examples is protected less: epsilon grows with their number.",
    ]


def _trust(guarantee: Guarantee) -> Sentences:
    said = ["Central: whoever trains sees the data; everybody else may see what is covered."]
    return said + [f"Covered: {what}." for what in guarantee.covers]


def _coverage(run: Result, guarantee: Guarantee, results: Results) -> Sentences:
    said = [f"Not covered: {what}." for what in guarantee.excludes]
    said += [f"Assumed: {what}." for what in guarantee.assumptions]
    others = len([other for other in results.done if other.kind == "private" and other.run != run.run])
    if others > 0:
        said.append(
            f"Not covered: the {others} other private runs of this page. They learned from the same examples; whoever "
            "publishes several of these models, or picks one by its accuracy here, spends the sum of their budgets."
        )
    if _about(run, results.attacks):
        said.append("Not covered: the figures of the attacks, which were told which examples were trained on.")
    return [*said, "Not covered: the test examples, on which accuracy was measured without noise."]


def _mechanism(run: Result) -> Sentences:
    if run.kind == "plain":
        how = {} if run.optimizer is None else run.optimizer.to_json()
        return [f"Plain training, {run.rounds} steps: " + ", ".join(f"{k} {v}" for k, v in how.items()) + "."]
    said = [f"{run.rounds} rounds, {run.kept} of them kept; noise multiplier {run.noise_multiplier:.4g}."]
    if (batch := run.settings.get("batch_size", float)) and (examples := run.examples):
        rate = min(1.0, batch / examples)
        said.append(f"Expected batch size {min(batch, examples):g} of {examples:,}: rate {rate:.4g} a round.")
    if clip := run.settings.get("max_grad_norm", float):
        said.append(f"Gradients bounded to norm {clip:g}.")
    if run.stages:
        said.append(run.stages)
    return said


def _accountant(run: Result, guarantee: Guarantee) -> Sentences:
    if not _finite(guarantee):
        return ["None: there is nothing to count."]
    library = run.machine.versions.get("dp-accounting") if run.machine is not None else None
    said = [": ".join(filter(None, [guarantee.accountant.upper(), guarantee.why])) + "."]
    if guarantee.route:
        said.append(f"Route: {guarantee.route}.")
    return said + ([f"dp-accounting {library}."] if library else [])


def _status(guarantee: Guarantee) -> str:
    return {
        "proved": "Proved for what the code does.",
        "as_claimed": "Only claimed by the paper; not proved, and not to be relied on.",
        "none": "No differential privacy.",
    }[guarantee.status]


def _about(run: Result, entries: Iterable[E]) -> list[E]:
    """What is said of this run, or of its method as such."""
    of_run = [entry for entry in entries if entry.run == run.run]
    return of_run + [entry for entry in entries if entry.run is None and entry.method == run.method]


def _audit(run: Result, results: Results) -> Sentences:
    audits = _about(run, results.audits)
    return [
        f"{entry.name}: {entry.verdict}; epsilon is at least {entry.lower:.2f} "
        f"(confidence {percent(entry.confidence, 0)}), {_at_most(entry.upper)}."
        for entry in audits
    ] or [
        "This model was not audited"
        + (": the figure above is an upper bound, and no lower one was measured." if run.epsilon else ".")
    ]


def _at_most(upper: float | None) -> str:
    return "and nothing is promised" if upper is None else f"and promised to be at most {round_up(upper)}"


def _attacks(run: Result, results: Results) -> Sentences:
    attacks = _about(run, results.attacks)
    return [
        f"{entry.attack}: AUC {entry.auc:.3f} on {entry.members:,} members and {entry.outsiders:,} others"
        + "".join(_found(rate) for rate in entry.at_low_rates)
        + "."
        for entry in attacks
    ] or ["This model was not attacked."]


def _found(rate: FoundAt) -> str:
    between = f"{percent(rate.low, 2)} to {percent(rate.high, 2)}"
    return f"; {percent(rate.tpr, 2)} found ({between}) at {100 * rate.fpr:g} % false alarms"


def _use(run: Result, rows: list[Row]) -> Sentences:
    if run.accuracy is None:
        return [f"Accuracy was not measured: {run.accuracy_on or 'no test split'}."]
    said = [f"Accuracy {percent(run.accuracy, 2)} ({run.accuracy_on})."]
    for row in rows:
        same = row.label == BASELINE and row.target_epsilon == run.target_epsilon and run.label != BASELINE
        if row.accuracy and (same or (row.kind == "plain" and run.kind != "plain")):
            said.append(f"{printed(row.label)}: {_seeds(row.accuracy)}.")
    if run.classes:
        worst = min(run.classes, key=lambda entry: entry.accuracy)
        said.append(f"Always naming the commonest class: {percent(run.commonest or 0.0, 2)}.")
        said.append(
            f"Worst class: {class_name(run, worst.number)}, {percent(worst.accuracy)} of {worst.examples} examples."
        )
    return said


def _seeds(spread: Spread) -> str:
    return percent(spread.mean, 2) + (" on average" if spread.kind != "single" else "")


def _implementation(run: Result, guarantee: Guarantee) -> Sentences:
    rng = (
        "Seeded, so that it can be repeated: whoever knows the seed can subtract the noise. Not for release."
        if guarantee.seeded
        else "Noise and draws come from fresh secret randomness."
    )
    said = [rng] if run.kind == "private" else []
    if run.machine is None:
        return said
    versions = ", ".join(f"{name} {number}" for name, number in run.machine.versions.items() if number)
    said += [f"{versions}; {run.machine.name}."] if versions else []
    return said + ([f"Commit {run.machine.commit}."] if run.machine.commit else [])


def _repeat(run: Result) -> Sentences:
    said = [repeated(run)] if run.kind == "private" else []
    said += [f"Finished {run.effort.finished}."] if run.effort is not None and run.effort.finished else []
    ledger = run.ledger
    return said + ([f"Ledger of training: {ledger.entries} releases, SHA-256 {ledger.sha256}."] if ledger else [])


def _limits(guarantee: Guarantee) -> Sentences:
    if not _finite(guarantee):
        return ["Nothing limits what an attacker may find out, except what attacks happen to reach."]
    epsilon, delta = guarantee.epsilon, guarantee.delta
    rates = (0.001, 0.01, 0.1)
    caught = ", ".join(f"{percent(caught_at_most(rate, epsilon, delta))} at {100 * rate:g} %" for rate in rates)
    return [
        f"Of the {guarantee.unit}s that were used, an attacker finds at most {caught} false alarms.",
        f"Asked of one {guarantee.unit}, used or not with equal chance, an attacker is right at most "
        f"{percent(right_at_most(epsilon, delta))} of the time.",
        "This holds whatever else the attacker knows, now or later. It does not hide what is true of everybody: a "
        "model that learns that smoking harms says so of smokers who took no part.",
    ]
