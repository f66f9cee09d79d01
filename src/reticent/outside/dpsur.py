"""Selective gates: keep an update only if a noisy validation test says that it helps (DPSUR, Fu et al. 2024)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from reticent.accounting import Event, Gaussian, SelectiveAttempt, SelectiveRelease, Subsampled, Unbounded
from reticent.accounting.claims import claimed
from reticent.accounting.claims.claimed import PaperClaim
from reticent.errors import SettingError, require
from reticent.inside import (
    AcceptanceCoin,
    GaussianNoise,
    LossChange,
    LossGain,
    Mechanism,
    Poisson,
    Query,
    RoundSettings,
)
from reticent.inside.lattice import AT_MOST
from reticent.outside.gates import Charge, Outcome, Proof, Proposal, Releases


@dataclass(frozen=True)
class NoisyTest:
    """Keep iff the noisy, clipped change of the mean loss is under `threshold` x `limit` (Fu et al. 2024, algorithm 2).

    `limit` is C_v, `threshold` is beta, `noise_multiplier` is sigma_v, `batch_size` is B_v. The test is on a fresh draw
    of the training examples, through the same door.
    """

    batch_size: float = 256
    noise_multiplier: float = 1.3
    limit: float = 0.001
    threshold: float = -1.0

    def __post_init__(self) -> None:
        require(self.batch_size > 0 and self.limit > 0, "the test needs a batch size and a loss limit above 0")
        require(
            0 < self.noise_multiplier < math.inf,
            f"the noise of the test must be above 0 and finite, not {self.noise_multiplier}",
        )
        require(abs(self.threshold) < math.inf, f"beta must be a finite number, not {self.threshold}")

    def acceptance(self) -> tuple[float, float]:
        """The least and the greatest chance to be kept.

        >>> [round(chance, 3) for chance in NoisyTest(noise_multiplier=1.0, threshold=0.0).acceptance()]
        [0.309, 0.691]
        """
        # On the lattice the noise is a little larger than declared: far thresholds are then passed a little more often.
        scales = 2 * self.noise_multiplier * np.array([1.0, AT_MOST])
        return float(ndtr((self.threshold - 1) / scales).min()), float(ndtr((self.threshold + 1) / scales).max())

    def smoothness(self, settings: RoundSettings) -> float | None:  # noqa: ARG002
        """None: one example can swing the mean from end to end."""
        return None

    def query(self, proposal: Proposal) -> Query:
        """How much the mean loss changed."""
        return LossChange(proposal.task, proposal.before, self.limit)

    def mechanism(self) -> Mechanism:
        """Normal noise of std 2 C_v sigma_v."""
        return GaussianNoise(self.noise_multiplier)

    def passes(self, answer: float) -> bool:
        """Whether the noisy change is low enough."""
        return answer < self.threshold * self.limit


@dataclass(frozen=True)
class SmoothTest:
    """Keep by a coin whose chance rises smoothly with the mean gain of the examples, each cut on its own.

    One example moves the logarithm of the chance by at most `influence`, where the noisy test lets it swing the whole
    way; so the same selection costs less privacy. `low` and `high` are the least and the greatest chance; `limit` cuts
    each example's change of loss.
    """

    batch_size: float = 1024
    low: float = 0.4
    high: float = 0.75
    limit: float = 0.1
    influence: float = 0.05

    def __post_init__(self) -> None:
        require(self.batch_size > 0 and self.limit > 0, "the test needs a batch size and a loss limit above 0")
        require(
            0 < self.low <= self.high <= 1,
            f"0 < accept_low <= accept_high <= 1 must hold, not {self.low} and {self.high}",
        )
        require(0 <= self.influence < math.inf, f"influence must be 0 or more and finite, not {self.influence}")

    def acceptance(self) -> tuple[float, float]:
        """The least and the greatest chance to be kept."""
        return self.low, self.high

    def smoothness(self, settings: RoundSettings) -> float | None:  # noqa: ARG002
        """How far one example moves the logarithm of the chance."""
        return self.influence

    def query(self, proposal: Proposal) -> Query:
        """The sum of the examples' gains, each within one unit."""
        return LossGain(proposal.task, proposal.before, self.limit)

    def mechanism(self) -> Mechanism:
        """A coin with that chance."""
        return AcceptanceCoin(self.low, self.high, self.influence)

    def passes(self, answer: float) -> bool:
        """Whether the coin says yes."""
        return answer > 0


Test = NoisyTest | SmoothTest


@dataclass(frozen=True)
class Selective:
    """Keep what a validation test accepts; a rejected candidate is wiped.

    By default (per attempt, route S) a round is one attempt, its rejection may be seen, the rejected candidate may not,
    and it costs one `SelectiveAttempt` whether kept or not. With `hidden_attempts` (per accepted update, route C) a
    round goes on until an attempt is kept, at most `cap` of them, and costs one `SelectiveRelease`; then the number of
    attempts, their timing and their logs must stay private. With `seen_attempts` (naive, route F) gradient and test of
    every attempt are charged as they are, and all of it may be seen.

    With `keep_state` the optimizer remembers rejected gradients, as in the authors' code: then every attempt is charged
    as it is (route F), or, with `hidden_attempts`, nothing is proved.
    """

    test: Test = NoisyTest()
    hidden_attempts: bool = False
    cap: int = 300
    seen_attempts: bool = False
    keep_state: bool = False

    def __post_init__(self) -> None:
        require(self.cap >= 1, f"cap must be 1 or more, not {self.cap}")
        if self.hidden_attempts and self.seen_attempts:
            raise SettingError("attempts are hidden or seen, not both: set hidden_attempts or seen_attempts to false")

    @property
    def candidates(self) -> int:
        """How many a round may try."""
        return self.cap if self.hidden_attempts else 1

    @property
    def proof(self) -> Proof:
        """What may be seen of what is rejected."""
        if self._in_full:
            return Proof("naive", counts="attempts")
        if self.hidden_attempts:
            hidden = "only kept updates are seen: the number, timing and logs of attempts stay private"
            return Proof("per_accepted", (hidden,), counts="accepted")
        return Proof("per_attempt", ("a rejected candidate is never seen",), counts="attempts")

    def claim(self, releases: Releases) -> PaperClaim | None:
        """Theorem 5.6 of the paper, which is refuted: kept updates only, as if each were released unconditionally."""
        if not isinstance(self.test, NoisyTest):
            return None  # the smooth test is ours: no paper claims anything for it
        _, likeliest = self.test.acceptance()
        return claimed.dpsur(
            releases.gradient,
            self._validation(releases.settings),
            releases.kept_at_best(1.0 if self.hidden_attempts else likeliest),
            releases.delta,
            orders=releases.orders,
            statistics=releases.already,
        )

    def charge(self, gradient: Event, settings: RoundSettings) -> Charge:
        """One event for gradient and test together, or each for itself where all is seen."""
        both = (gradient, self._validation(settings))
        if self._in_full:
            return Charge(both)
        if self.keep_state:
            return Charge(
                (Unbounded("rejected gradients stay in the optimizer, and only kept updates are counted"),),
                both * self.cap,
            )
        rate, noise = candidate(gradient)
        low, high = self.test.acceptance()
        validation = self._settings(settings)
        attempt = SelectiveAttempt(rate, noise, validation.rate, low, high, self.test.smoothness(settings))
        if self.hidden_attempts:
            return Charge((SelectiveRelease(attempt, self.cap),), both * self.cap)
        return Charge((attempt,), both)

    def settle(self, proposal: Proposal) -> Outcome:
        """Ask the test, on a fresh draw."""
        vault = proposal.vault
        draw = vault.draw(Poisson(), self._settings(proposal.settings))
        answer = vault.release(vault.ask(self.test.query(proposal), draw), self.test.mechanism())
        return Outcome(kept=self.test.passes(float(answer)), state_stays=self.keep_state)

    @property
    def _in_full(self) -> bool:
        """Whether gradient and test of every attempt are charged as they are."""
        return self.seen_attempts or (self.keep_state and not self.hidden_attempts)

    def _validation(self, settings: RoundSettings) -> Event:
        return Poisson().amplify(self.test.mechanism().event(), self._settings(settings))

    def _settings(self, settings: RoundSettings) -> RoundSettings:
        return replace(settings, batch_size=min(self.test.batch_size, settings.size))


def candidate(gradient: Event) -> tuple[float, float]:
    """Rate and noise multiplier of a gradient release, the one kind of candidate whose selection is accounted for."""
    match gradient:
        case Subsampled(rate, Gaussian(noise)):
            return rate, noise
        case Gaussian(noise):
            return 1.0, noise
    raise SettingError(f"no proof covers keeping or dropping updates released as {gradient}: use an open gate")
