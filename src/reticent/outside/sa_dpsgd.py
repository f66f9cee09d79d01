"""Annealing gates: keep a worse update now and then, less and less often (SA-DPSGD, Fu et al. 2022)."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from typing import Protocol

import torch
from torch import Tensor

from reticent.accounting import AnnealedRelease, Event
from reticent.accounting.claims import claimed
from reticent.accounting.claims.claimed import PaperClaim
from reticent.errors import SettingError, require
from reticent.inside import GaussianNoise, LossChange, Poisson, RoundSettings, Task
from reticent.outside.dpsur import candidate
from reticent.outside.gates import Charge, Outcome, Proof, Proposal, Releases


class Judge(Protocol):
    """Tells by how much a proposal changed the loss, and what asking costs."""

    def events(self, settings: RoundSettings) -> tuple[Event, ...]:
        """What one answer writes into the ledger."""
        ...

    def change(self, proposal: Proposal) -> float:
        """The change of the loss; below zero is better."""
        ...


@dataclass(frozen=True, repr=False)
class PublicHoldout:
    """Examples that are nobody's secret: asking them is free. Never the set that accuracy is reported on.

    `reported_on` admits that it is that set, as in the paper, and the guarantee says what accuracy is then.
    """

    x: Tensor
    y: Tensor
    reported_on: bool = False
    _known: list[tuple[Task, Tensor, float]] = field(default_factory=list, init=False, compare=False)
    """The last two places that were asked about: an attempt starts at one of them, which need not be asked again."""

    def __post_init__(self) -> None:
        if len(self.x) == 0 or len(self.x) != len(self.y):
            raise SettingError(f"a hold-out needs examples, one label each: got {len(self.x)} and {len(self.y)}")

    def __repr__(self) -> str:
        parts = (part.detach().cpu().contiguous().view(torch.uint8).numpy() for part in (self.x, self.y))
        mark = hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:8]
        return f"PublicHoldout({len(self.y)} examples, {mark}{', reported on' if self.reported_on else ''})"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a guarantee rests on, and what no reader may take from it."""
        chosen = "accuracy on the hold-out is no estimate of anything: it chose the updates"
        return ("the hold-out is public", *((chosen,) if self.reported_on else ()))

    def events(self, settings: RoundSettings) -> tuple[Event, ...]:  # noqa: ARG002 - public
        """Nothing."""
        return ()

    def change(self, proposal: Proposal) -> float:
        """The mean loss on the hold-out here minus that before."""
        task = proposal.task
        here, before = self._loss(task), self._remembered(task, proposal.before)
        if before is None:
            with task.flat.moved_to(proposal.before):
                before = self._loss(task)
        self._known[:] = [(task, task.flat.vector.clone(), here), (task, proposal.before.clone(), before)]
        return proposal.vault.agreed(here - before)

    def _remembered(self, task: Task, place: Tensor) -> float | None:
        return next((loss for of, at, loss in self._known if of is task and torch.equal(at, place)), None)

    def _loss(self, task: Task) -> float:
        """The mean loss, with the same dropout whenever it is asked for: what is remembered must be no other."""
        device = task.flat.vector.device
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            pairs = zip(torch.split(self.x, 1024), torch.split(self.y, 1024), strict=True)
            total = sum(float(task.loss(task.model, (x.to(device), y.to(device))).double().sum()) for x, y in pairs)
        return total / len(self.y)


@dataclass(frozen=True)
class PrivateAnswer:
    """Asks the training examples through the door: clipped, noised and charged at every attempt."""

    batch_size: float = 256
    noise_multiplier: float = 1.3
    limit: float = 0.001

    def __post_init__(self) -> None:
        require(self.batch_size > 0 and self.limit > 0, "the judge needs a batch size and a loss limit above 0")
        require(
            0 < self.noise_multiplier < math.inf,
            f"the noise of the judge must be above 0 and finite, not {self.noise_multiplier}",
        )

    def events(self, settings: RoundSettings) -> tuple[Event, ...]:
        """One noisy answer on a draw of its own."""
        return (Poisson().amplify(GaussianNoise(self.noise_multiplier).event(), self._settings(settings)),)

    def change(self, proposal: Proposal) -> float:
        """The noisy change of the mean loss."""
        draw = proposal.vault.draw(Poisson(), self._settings(proposal.settings))
        sealed = proposal.vault.ask(LossChange(proposal.task, proposal.before, self.limit), draw)
        return float(proposal.vault.release(sealed, GaussianNoise(self.noise_multiplier)))

    def _settings(self, settings: RoundSettings) -> RoundSettings:
        return replace(settings, batch_size=min(self.batch_size, settings.size))


@dataclass(frozen=True)
class Annealed:
    """Keep with chance min(1, exp(-change x cooling x kept so far)), and always after so many rejections in a row.

    Fu et al. 2022, algorithm 2: `cooling` is Q0, `max_rejections` is mu0. Every attempt is charged. With
    `hidden_attempts` a round tries until one is kept and costs one `AnnealedRelease`; that needs a public judge, and
    attempts kept private.
    """

    judge: Judge
    cooling: float = 10.0
    max_rejections: int = 10
    hidden_attempts: bool = False

    def __post_init__(self) -> None:
        require(0 <= self.cooling < math.inf, f"cooling must be 0 or more and finite, not {self.cooling}")
        require(self.max_rejections >= 0, f"max_rejections must be 0 or more, not {self.max_rejections}")
        if self.hidden_attempts and not isinstance(self.judge, PublicHoldout):
            raise SettingError("hidden attempts are only accounted for with a public hold-out: give one, or charge all")

    @property
    def candidates(self) -> int:
        """All that may be rejected, and the one that is kept for certain."""
        return self.max_rejections + 1 if self.hidden_attempts else 1

    @property
    def proof(self) -> Proof:
        """Every attempt, or first accepted of a group that stays hidden."""
        public = self.judge.assumptions if isinstance(self.judge, PublicHoldout) else ()
        if not self.hidden_attempts:
            return Proof("every attempt", public, counts="attempts")
        hidden = "only kept updates are seen: the number and timing of attempts stay private"
        return Proof("per_accepted", (*public, hidden), counts="accepted")

    def claim(self, releases: Releases) -> PaperClaim:
        """Lemma 2 of the paper on kept updates only, which is refuted."""
        return claimed.sa_dpsgd(
            releases.gradient,
            releases.kept_at_best(),
            releases.delta,
            orders=releases.orders,
            statistics=releases.already,
        )

    def charge(self, gradient: Event, settings: RoundSettings) -> Charge:
        """Gradient and judge, each for itself; or one event for a whole group of hidden attempts."""
        if not self.hidden_attempts:
            return Charge((gradient, *self.judge.events(settings)))
        rate, noise = candidate(gradient)
        return Charge((AnnealedRelease(rate, noise, self.max_rejections),), (gradient,) * self.candidates)

    def settle(self, proposal: Proposal) -> Outcome:
        """Throw the coin."""
        change = self.judge.change(proposal)
        forced = proposal.rejections >= self.max_rejections
        return Outcome(kept=forced or proposal.coin < self.chance(change, proposal.kept))

    def chance(self, change: float, kept: int) -> float:
        """How likely a change of the loss is kept after so many kept ones (Fu et al. 2022, eq. 3).

        >>> Annealed(PrivateAnswer()).chance(-0.1, 3), round(Annealed(PrivateAnswer()).chance(0.1, 3), 4)
        (1.0, 0.0498)
        """
        if math.isnan(change):
            return 0.0
        return math.exp(-max(change, 0.0) * self.cooling * kept)
