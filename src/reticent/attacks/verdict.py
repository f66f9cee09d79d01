"""The verdict on a model in words: whether any attack did better than guessing, and how much it can have found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from reticent.attacks.intervals import rate_at_most
from reticent.attacks.permitted import permitted_tpr
from reticent.attacks.summary import Summary

RATE = 0.01
"""The rate of false alarms at which the verdict speaks."""


@dataclass(frozen=True)
class Beside:
    """What stands beside the attacks: the blind baseline, the canaries, and the attacks that set off the alarm."""

    blind: Summary
    canaries: Summary | None = None
    beyond: tuple[str, ...] = ()


def better_than_guessing(found: Summary, level: float) -> bool:
    """Whether an AUC is above one half by more than chance explains (Mann and Whitney 1947), at this level."""
    members, others = found.members, found.outsiders
    spread = math.sqrt((members + others + 1) / (12 * members * others))
    return found.auc - 0.5 > float(ndtri(1 - level)) * spread


def verdict(attacks: Sequence[Summary], beside: Beside, epsilon: float, delta: float, *, alpha: float = 0.05) -> str:
    """One or two sentences; the chance of a false one is at most about `alpha`, divided among the attacks."""
    level = alpha / max(len(attacks), 1)
    better = [found.attack for found in attacks if better_than_guessing(found, level)]
    said = [_alarm(beside.beyond)] if beside.beyond else []
    said.append(_found(attacks, better, level, alpha) + _permitted(epsilon, delta))
    if better and better_than_guessing(beside.blind, alpha):
        said.append(
            "Members differ from others by themselves: a guess that never asks the model does better than chance too "
            f"(AUC {beside.blind.auc:.2f}), so this may say more of the split than of the model."
        )
    worst = beside.canaries
    if worst is not None and better_than_guessing(worst, alpha):
        said.append(f"Canaries, made to be remembered, are told apart (AUC {worst.auc:.2f}).")
    return " ".join(said)


def _alarm(names: Sequence[str]) -> str:
    return f"ALARM: {', '.join(names)} did better than the guarantee permits: the guarantee, or its attack, is wrong."


def _found(attacks: Sequence[Summary], better: Sequence[str], level: float, alpha: float) -> str:
    """What the attacks reached at most, in members found, or in pairs told apart where there are too few of them."""
    sure = f"({100 * (1 - alpha):g} % confidence)"
    counts = {found.attack: (_at_one_percent(found), found) for found in attacks}
    measured = {name: (rate, found) for name, (rate, found) in counts.items() if rate is not None}
    if len(measured) < len(attacks):
        most = max(min(1.0, found.auc + float(ndtri(1 - level)) * found.standard_error) for found in attacks)
        bound = f"shown a member and another, the right one is picked at most {most:.0%} of the time {sure}"
    else:
        most = max(rate_at_most(round(rate * found.members), found.members, level) for rate, found in measured.values())
        bound = f"at 1 % false alarms, at most {100 * most:.1f} % of the members could have been found {sure}"
    if not better:
        return f"No attack did better than guessing: {bound}"
    return f"Membership shows: {', '.join(better)} did better than guessing; {bound}"


def _at_one_percent(found: Summary) -> float | None:
    return next((at.tpr for at in found.at_low_rates if at.fpr == RATE), None)


def _permitted(epsilon: float, delta: float) -> str:
    if math.isinf(epsilon):
        return ", and no guarantee limits it."
    return f", and the guarantee permits {100 * float(permitted_tpr(np.array([RATE]), epsilon, delta)[0]):.1f} %."
