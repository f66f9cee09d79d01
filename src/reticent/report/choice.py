"""The choice of a row: what it costs to take the best of several private runs because it came out best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reticent.accounting.guarantee import round_up
from reticent.results import Result


@dataclass(frozen=True)
class Picking:
    """All private runs that a choice looks at, taken together: budgets add up (Dwork et al. 2006)."""

    runs: int
    epsilon: float
    delta: float
    unproved: int
    """Runs that prove nothing, and are not in the sum."""

    @property
    def cost(self) -> str:
        """What a choice costs, in two words.

        >>> Picking(2, 6.0, 2e-5, 0).cost
        'epsilon 6.00'
        """
        return f"epsilon {round_up(self.epsilon)}"

    @property
    def sentence(self) -> str:
        """The warning in full."""
        more = f" ({self.unproved} more prove{'s' * (self.unproved == 1)} nothing)" if self.unproved else ""
        return (
            f"Budgets add up: whoever picks a row for its accuracy here spends {self.cost}, the sum over all "
            f"{self.runs} private runs{more}, not that row's alone. To pay once, settle on a method "
            "beforehand, compare on public data, or let the choice itself be private (`reticent tune`)."
        )

    def to_json(self) -> dict[str, object]:
        """The figures as plain data."""
        return {
            "runs": self.runs,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "unproved": self.unproved,
            "sentence": self.sentence,
        }


def picking(runs: Iterable[Result]) -> Picking | None:
    """What picking among these runs costs; None where fewer than two of them prove an epsilon.

    >>> from reticent.accounting import Guarantee
    >>> one = Result(run="a", label="dpsgd", recipe={"method": "dpsgd"}, guarantee=Guarantee("proved", 3.0, 1e-5))
    >>> picking([one, one]).cost, picking([one])
    ('epsilon 6.00', None)
    """
    private = [run for run in runs if run.done and run.kind == "private"]
    proved = [run for run in private if run.epsilon is not None]
    if len(proved) < 2:
        return None
    epsilon, delta = sum(run.epsilon or 0.0 for run in proved), sum(run.guarantee.delta for run in proved)
    return Picking(len(proved), epsilon, delta, len(private) - len(proved))
