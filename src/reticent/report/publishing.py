"""Publishing: what of a run may be shown to everybody, and what must stay where the data are."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.report.results import Results
from reticent.results import Result


@dataclass(frozen=True)
class Kept:
    """Something that must not be published, and why."""

    what: str
    why: str


def publishable(run: Result) -> list[str]:
    """What the guarantee covers, in things one can point at; nothing without one."""
    if run.epsilon is None or run.guarantee.seeded:
        return []
    return [
        "The weights (model.safetensors), and all that can be made of them.",
        "The guarantee and the settings (card.json), unless the settings were chosen by looking at the examples.",
        "The number of rounds, and which of them were kept.",
    ]


def unpublishable(run: Result, results: Results) -> list[Kept]:
    """What must not be published, the worst first."""
    kept = []
    if run.epsilon is None:
        kept.append(
            Kept("The model", f"nothing is proved of what it gives away: {run.guarantee.why or 'no guarantee'}.")
        )
    elif run.guarantee.seeded:
        kept.append(
            Kept("The model", "its noise came from a seed, and whoever knows the seed can take it away: train without.")
        )
    if results.private:
        kept.append(Kept("This page", "they tell numbers about the training examples."))
    if results.attacks:
        what = "The figures of attacks on this page"
        kept.append(Kept(what, "they were told who was trained on, and name the records that show most."))
    if results.audits:
        kept.append(
            Kept("The figures of audits on this page", "they come from one more training on the same examples.")
        )
    kept.append(Kept("The folder private/", "whatever lies there tells of the examples."))
    kept.append(
        Kept(
            "Whatever was measured on training examples",
            "their loss or accuracy, how many were clipped, how long rounds took.",
        )
    )
    if run.accuracy is not None or run.learning is not None:
        what = "Accuracy, classes and curves, unless the examples they were measured on are public"
        kept.append(Kept(what, "they are exact, without any noise."))
    kept.append(Kept("A second model of the same examples", "it has a price of its own, and budgets add up."))
    return kept
