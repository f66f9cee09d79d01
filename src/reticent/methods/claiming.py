"""What a method's paper would claim for a run, and how long a run is that ends at a claimed epsilon."""

from __future__ import annotations

from collections.abc import Sequence

from reticent.accounting import Event
from reticent.accounting.calibrate import largest
from reticent.accounting.claims.claimed import Orders, PaperClaim
from reticent.errors import SettingError
from reticent.inside import RoundSettings
from reticent.methods.method import Method
from reticent.outside import Claiming, Releases


def claim_of(
    method: Method,
    settings: RoundSettings,
    rounds: int,
    delta: float,
    *,
    kept: int | None = None,
    already: Sequence[Event] = (),
    orders: Orders = "paper",
) -> PaperClaim | None:
    """What the paper says after so many kept updates; None where it has no rule of its own.

    Not said how many: as many as can be expected at best.
    """
    releases = Releases(
        gradient=method.gradient_event(settings),
        settings=settings,
        rounds=rounds,
        kept=kept,
        delta=delta,
        already=already,
        orders=orders,
    )
    stages = (method.gate, method.control, method.direction)
    return next((stage.claim(releases) for stage in stages if isinstance(stage, Claiming)), None)


def rounds_as_claimed(
    method: Method, settings: RoundSettings, epsilon: float, delta: float, already: Sequence[Event] = ()
) -> int:
    """The most rounds for which the paper claims no more than this epsilon: no guarantee.

    >>> from reticent.methods import dpsur
    >>> method = dpsur(noise_multiplier=4.0, validation_noise=1.3, hidden_attempts=True)
    >>> rounds_as_claimed(method, RoundSettings(60000, 2048, 0.1, 4.0), 1.0, 1e-5)
    651
    """
    if method.gate.proof.counts == "attempts":
        raise SettingError(
            f"{method.name} keeps some of its attempts, and its paper charges for those: a run ends at a claimed "
            "epsilon only if the number of kept updates is fixed. Set hidden_attempts=true"
        )

    def claims_no_more(rounds: int) -> bool:
        claim = claim_of(method, settings, rounds, delta, kept=rounds, already=already)
        if claim is None:
            raise SettingError(f"{method.name} has no rule of its own to claim an epsilon by: give epochs")
        return claim.epsilon <= epsilon

    found = largest(claims_no_more)
    if found == 0:
        raise SettingError(f"not even one round of {method.name} is claimed to cost epsilon {epsilon:g} or less")
    return found
