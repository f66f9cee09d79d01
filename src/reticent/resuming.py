"""Resuming: what a run must find in its ledger before it goes on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reticent.accounting import Event, Ledger
from reticent.errors import ResumeError
from reticent.inside.ranks import Ranks
from reticent.methods import Plan

_REMEDY = "Bring back ledger.jsonl as it was, or start a new run in another folder."


def common_ledger(path: Path | None, ranks: Ranks) -> Ledger:
    """The ledger of a run: the first rank's is in a file, and the others have the same in memory."""
    with ranks.together():
        ledger = Ledger(path)
    entries = ranks.share(lambda: tuple(ledger))
    for entry in () if ranks.leads else entries:
        ledger.record(entry)
    return ledger


def refuse_other_ledger(ledger: Ledger, stored: Mapping[str, Any] | None, plan: Plan) -> None:
    """Refuse a ledger that is not the one the checkpoint was written with, or that the plan does not know.

    >>> from reticent.accounting import Entry, Gaussian
    >>> ledger = Ledger(); _ = ledger.record(Entry(round=0, query=0, event=Gaussian(1.0), seal=""))
    >>> refuse_other_ledger(ledger, None, plan=...)
    Traceback (most recent call last):
    reticent.errors.ResumeError: ... holds 1 releases, but there is no checkpoint ...
    """
    if stored is None:
        if len(ledger):
            raise ResumeError(
                f"{ledger.path} holds {len(ledger)} releases, but there is no checkpoint to go on from: bring back "
                "private/checkpoint.safetensors, or start a new run in another folder"
            )
        return
    number = refuse_lost(ledger, stored)
    if not plan.adaptive and math.isfinite(plan.price.epsilon):
        _refuse_unplanned(ledger, number, plan)


def refuse_lost(ledger: Ledger, stored: Mapping[str, Any]) -> int:
    """Refuse a ledger that lacks what the checkpoint has seen; how many rounds that are."""
    _refuse_changed(ledger, stored.get("ledger"))
    number: int = stored.get("number", 0)  # the checkpoint of a search knows of no rounds
    if not set(range(number)) <= {entry.round for entry in ledger}:
        raise ResumeError(
            f"the ledger lacks some of the {number} rounds that the checkpoint has seen: what they cost would be "
            f"forgotten. {_REMEDY}"
        )
    return number


def refuse_other_examples(stored: Mapping[str, Any], fingerprint: str) -> None:
    """Refuse to go on with other examples than those that the run began with."""
    if stored["examples"] != fingerprint:
        raise ResumeError(
            "the examples differ from those the run was started with: the same noise on other data would reveal it. "
            "Resume with the same data, or start a new run in another folder."
        )


def rounds_begun(ledger: Ledger, stored: Mapping[str, Any]) -> int:
    """How many rounds have released something, if more than the checkpoint has seen; else 0."""
    begun = 1 + max((entry.round for entry in ledger), default=-1)
    return begun if begun > stored["number"] else 0


def _refuse_changed(ledger: Ledger, mark: object) -> None:
    """The ledger begins with what it held when the checkpoint was written; older checkpoints did not say."""
    if not isinstance(mark, dict):
        return
    count = mark["entries"]
    if len(ledger) < count:
        raise ResumeError(
            f"the ledger holds {len(ledger)} releases, and {count} had been made when the checkpoint was written: what "
            f"they cost would be forgotten. {_REMEDY}"
        )
    if ledger.mark(count).to_json() != mark:
        raise ResumeError(
            f"the first {count} lines of the ledger are not those that the checkpoint was written with. {_REMEDY}"
        )


def _refuse_unplanned(ledger: Ledger, number: int, plan: Plan) -> None:
    """What was released in the rounds that are done is what was planned for them; and nothing else was released."""
    done: Counter[Event] = Counter(entry.event for entry in ledger if entry.round < number)
    if done != Counter(plan.tally(number)) or not Counter(ledger.tally()) <= Counter(plan.tally()):
        raise ResumeError(f"the releases in the ledger are not those that were planned for this run. {_REMEDY}")
