"""Events: what was released, as frozen words; what a word costs is decided elsewhere (renyi/, losses/).

Events outlive the program that wrote them: they stand in ledgers, under the names of their classes and fields. So

- what a class or a field means never changes, and neither is ever renamed, taken away or used for something else;
- a new meaning is a new class, even where it differs in a detail only;
- a field may be added if it has a default, and if its default means what was meant when there was no such field.

Prices may change, as proofs get better. An event, or a field, that is not known here is `Unbounded`: a newer Reticent
may have meant something dearer by it. How events are laid out in a file (event_json.py) is the version of the
ledger (ledger.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reticent.errors import SettingError


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise of `noise_multiplier` times the sensitivity on a sum over all examples."""

    noise_multiplier: float

    def __post_init__(self) -> None:
        _require(self.noise_multiplier >= 0, self, "noise must be 0 or more")


@dataclass(frozen=True)
class Laplace:
    """Laplace noise of scale `noise_multiplier` times the (L1) sensitivity."""

    noise_multiplier: float

    def __post_init__(self) -> None:
        _require(self.noise_multiplier >= 0, self, "noise must be 0 or more")


@dataclass(frozen=True)
class NoisyMax:
    """The index of the largest of several noisy scores, an `epsilon`-DP choice (Dwork & Roth 2014, claim 3.9)."""

    epsilon: float

    def __post_init__(self) -> None:
        _require(self.epsilon >= 0, self, "epsilon must be 0 or more")


@dataclass(frozen=True)
class Subsampled:
    """`inner` on a Poisson draw: every example takes part independently with chance `rate`."""

    rate: float
    inner: Event

    def __post_init__(self) -> None:
        _require(0 <= self.rate <= 1, self, "a rate is a chance between 0 and 1")


@dataclass(frozen=True)
class PartInTurn:
    """`inner`, about the group `part` of `parts` groups, in one of which each example is, by a coin thrown beforehand.

    Groups have their turns one after the other, beginning with 0. What is told in the turn of a group, and in the
    `parts` - 1 turns after it, is all of it `inner` for that group, and nothing for the others.
    """

    part: int
    parts: int
    inner: Event

    def __post_init__(self) -> None:
        _require(0 <= self.part < self.parts, self, "a part is one of the parts")


@dataclass(frozen=True)
class FixedSize:
    """`inner` on `batch` of `size` places, drawn without putting back; a place has an example of its own, or nobody.

    Where there are more examples than places, it is on `batch` of them all.
    """

    batch: int
    size: int
    inner: Event

    def __post_init__(self) -> None:
        _require(0 < self.batch <= self.size, self, "a batch has at least one place, and no more than there are")


@dataclass(frozen=True)
class Truncated:
    """`inner` on a Poisson draw from `size` places, of which, where more were drawn, `most` are chosen by chance.

    A place has an example of its own, or nobody, and there are no more examples than places.
    """

    rate: float
    most: int
    size: int
    inner: Event

    def __post_init__(self) -> None:
        _require(0 <= self.rate <= 1, self, "a rate is a chance between 0 and 1")
        _require(self.most >= 1 and self.size >= 1, self, "a draw has at least one place")


@dataclass(frozen=True)
class BinInTurn:
    """`inner`, about those who are in bin `turn`; there are `turns` bins, which have their turns from 0 on.

    When it is the turn of bin 0, every example falls into a bin by a coin of its own, thrown anew.
    """

    turn: int
    turns: int
    inner: Event

    def __post_init__(self) -> None:
        _require(0 <= self.turn < self.turns, self, "a turn is one of the turns")


@dataclass(frozen=True)
class OnceIn:
    """`inner`, in one of `rounds` rounds that chance has chosen; the others tell nothing of an example."""

    rounds: int
    inner: Event

    def __post_init__(self) -> None:
        _require(self.rounds >= 1, self, "there is at least one round")


@dataclass(frozen=True)
class RoundOfStream:
    """Answer `number` of a stream of `rounds` answers, from 0 on, which tell of an example `inner`, all together."""

    number: int
    rounds: int
    inner: Event

    def __post_init__(self) -> None:
        _require(0 <= self.number < self.rounds, self, "a round is one of the rounds")


@dataclass(frozen=True)
class Composed:
    """Several events, all of them released."""

    parts: tuple[Event, ...]


@dataclass(frozen=True)
class Repeated:
    """`inner`, released `count` times."""

    inner: Event
    count: int

    def __post_init__(self) -> None:
        _require(self.count >= 0, self, "a count is 0 or more")


@dataclass(frozen=True)
class BestTrial:
    """The best of K trials, each of which releases `trial`; nothing else of them is seen, nor is K.

    K has a truncated negative binomial law of `eta` and `gamma`, fixed beforehand (Papernot & Steinke 2022). Which
    settings a trial has is drawn by chance, from choices that were fixed beforehand too.
    """

    trial: Event
    eta: float
    gamma: float

    def __post_init__(self) -> None:
        _require(self.eta > -1 and 0 < self.gamma < 1, self, "eta is above -1, and gamma between 0 and 1")


@dataclass(frozen=True)
class SelectiveAttempt:
    """One attempt whose rejection is seen and whose rejected candidate stays hidden (route S).

    The candidate is a Subsampled(rate, Gaussian(noise_multiplier)) update; a test on an independent Poisson draw of
    rate `validation_rate` keeps it with a chance between `accept_low` and `accept_high`. `smoothness` is how far one
    validation record can move the logarithm of that chance; None: all the way from one end to the other.
    """

    rate: float
    noise_multiplier: float
    validation_rate: float
    accept_low: float
    accept_high: float
    smoothness: float | None = None

    def __post_init__(self) -> None:
        _require(self.noise_multiplier >= 0, self, "noise must be 0 or more")
        _require(0 <= self.rate <= 1 and 0 <= self.validation_rate <= 1, self, "a rate is a chance between 0 and 1")
        _require(0 <= self.accept_low <= self.accept_high <= 1, self, "0 <= accept_low <= accept_high <= 1")
        _require(self.smoothness is None or self.smoothness >= 0, self, "smoothness must be 0 or more")


@dataclass(frozen=True)
class SelectiveRelease:
    """One accepted update after any number of hidden attempts, at most `cap` (route C)."""

    attempt: SelectiveAttempt
    cap: int | None = None

    def __post_init__(self) -> None:
        _require(self.cap is None or self.cap >= 1, self, "a cap is at least 1")


@dataclass(frozen=True)
class AnnealedRelease:
    """The first accepted of at most `max_rejections` + 1 candidates, judged on public data only (SA-DPSGD)."""

    rate: float
    noise_multiplier: float
    max_rejections: int

    def __post_init__(self) -> None:
        _require(self.noise_multiplier >= 0, self, "noise must be 0 or more")
        _require(0 <= self.rate <= 1, self, "a rate is a chance between 0 and 1")
        _require(self.max_rejections >= 0, self, "rejections are 0 or more")


@dataclass(frozen=True)
class Concentrated:
    """Anything that is `rho`-zCDP (Bun & Steinke 2016)."""

    rho: float

    def __post_init__(self) -> None:
        _require(self.rho >= 0, self, "rho must be 0 or more")


@dataclass(frozen=True)
class Unbounded:
    """Something no proof covers: its epsilon is infinite, and `why` says the reason."""

    why: str


Event = (
    Gaussian
    | Laplace
    | NoisyMax
    | Subsampled
    | PartInTurn
    | FixedSize
    | Truncated
    | BinInTurn
    | OnceIn
    | RoundOfStream
    | Composed
    | Repeated
    | BestTrial
    | SelectiveAttempt
    | SelectiveRelease
    | AnnealedRelease
    | Concentrated
    | Unbounded
)
"""What was released, as a word that has a price."""

Tally = Mapping[Event, int]
"""Events with how often each of them happened."""


def _require(holds: bool, event: object, rule: str) -> None:
    if not holds:
        raise SettingError(f"{event} cannot be: {rule}")
