"""Findings: what one probe says, in a sentence, with the figures behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reticent.errors import ReticentError


@dataclass(frozen=True)
class Finding:
    """One probe's word: the claim holds as far as it can see, or it is contradicted."""

    probe: str
    holds: bool
    says: str
    figures: Mapping[str, object] = field(default_factory=dict)
    looked: bool = True
    """False where the probe could not be made: that is no evidence of anything."""


SURELY = 1e-7
"""The level of each deterministic probe's own statistics: a right build is accused once in millions of audits."""


def attempted(probe: str, look: Callable[[], Finding]) -> Finding:
    """The finding, or a contradiction where the audited code broke down under the probe.

    What Reticent itself refuses to run reveals nothing: it is no contradiction.

    >>> attempted("noise", lambda: 1 / 0).says
    'the step failed: ZeroDivisionError: division by zero'
    """
    try:
        return look()
    except ReticentError as refusal:
        return Finding(probe, True, f"not looked at: {refusal}", looked=False)
    except (ArithmeticError, LookupError, RuntimeError, ValueError) as error:
        return Finding(probe, False, f"the step failed: {type(error).__name__}: {error}")
