"""Defaults: batch, rounds and step of a run by one rule, from public numbers alone.

A round adds noise of norm `noise sqrt(parameters) / batch` to a mean of clipped gradients of norm 1 at most (in units
of the clip norm). So a whole run, whose signal adds up and whose noise walks at random, has the signal-to-noise ratio

    S = sqrt(rounds) batch / (noise sqrt(parameters)),

which large noise makes mu size / sqrt(parameters): of the budget (as the mu of Gaussian DP, Dong, Roth & Su 2022), not
of how it is cut into rounds. The rule follows from it:

- rounds: one for each unit of S, from 300 to 2,000. Where noise is small many small steps are worth their while; where
  it is large they change nothing, as long as there are enough to make up for what clipping cuts off.
- batch: a draw at the rate q wastes noise by the factor u / sqrt(log(1 + u^2)), u = mu / (q sqrt(rounds)) (the central
  limit theorem of Bu et al. 2020). At u = 1/3 that is 2.6 %: q = 3 mu / sqrt(rounds); larger batches are only slower.
- step: over so many steps of length `lr clip`, half of the error comes from not having got there and half from noise if
  the way is distance x S (Bassily, Smith & Thakurta 2014). The distance that pays grows a little with S, as what noise
  hides need not be learned: 2.5 (S / 100)^(1/4), found on training examples of Adult, digits and Location-30. In a
  network each layer moves, so that steps are shorter by the root of their number. No step is longer
  than 4, or 0.5 where a number is predicted.
- a step by signs goes as far on average if its length is that of SGD's on the noise: a coordinate of small signal m and
  noise s has the mean sign sqrt(2/pi) m / s, and momentum 0.9 makes ten steps of SGD's one.
- the last 15 % of the weights are averaged, which takes the noise of the last steps off.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from reticent.accounting.losses.tradeoff import mu
from reticent.methods.solving import rounds_in

MOMENTUM = 0.9
FEWEST, MOST, VERY_FEW = 300, 2000, 30
"""Rounds; the last where so few epochs were said that a usual batch would leave fewer."""
WASTE = 1 / 3
"""Of a draw: u above."""
SMALLEST = 64
"""The batch where the budget would have a smaller one: below, the draw itself is the noise."""
REACH, GROWTH, LONGEST = 2.5, 0.25, 4.0
"""How far to go at S = 100, by which power of S it grows, and the longest step."""
LONGEST_REGRESSION = 0.5
"""The longest step where a number is predicted: beyond 2 over the curvature of a squared error it swings."""
AVERAGED = 0.15
ADAM = 0.01
"""Adam's steps have their own scale."""
LEAST_SPREAD = 0.01
"""A coordinate of a mean gradient is not taken to be smaller, over that of a unit vector: where noise is 0."""
UNBOUNDED_MU = 1.0
"""For a run without a budget: that of epsilon 4 or so."""


@dataclass(frozen=True, kw_only=True)
class Public:
    """The public numbers that the rule starts from; `layers` is the number of trained matrices that follow each other.

    >>> Public(size=1000, parameters=50, epsilon=3.0, delta=1e-5).layers
    1
    """

    size: int
    parameters: int
    layers: int = 1
    epsilon: float | None = None
    delta: float = 1e-5
    noise_multiplier: float | None = None
    max_grad_norm: float = 1.0
    optimizer: str = "sgd"
    task: str | None = None
    """What is learned, by the loss: the curvature of squared errors does not fade as that of classes does."""
    signs: bool = False
    """Whether only the signs of the released mean are followed."""

    @property
    def mu(self) -> float:
        """The budget as the mu of Gaussian DP: for the choice of settings only, never a certificate."""
        return UNBOUNDED_MU if self.epsilon is None else mu(self.epsilon, self.delta)

    def noise(self, batch_size: float, rounds: int) -> float:
        """About how much noise such a run will have, by the central limit theorem."""
        if self.noise_multiplier is not None:
            return self.noise_multiplier
        waste = self.mu * self.size / (batch_size * math.sqrt(rounds))
        return 1 / math.sqrt(math.log1p(waste**2)) if batch_size < self.size else 1 / waste

    def signal(self, batch_size: float, rounds: int) -> float:
        """The signal-to-noise ratio S of such a run."""
        noise = self.noise(batch_size, rounds) * math.sqrt(self.parameters)
        return math.sqrt(rounds) * batch_size / noise if noise else math.inf

    def spread(self, batch_size: float, rounds: int) -> float:
        """How large a coordinate of a released mean is, in units of the clip norm: noise for the most part."""
        return max(self.noise(batch_size, rounds) / batch_size, LEAST_SPREAD / math.sqrt(self.parameters))


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What the rule says where nothing else was said; `signal` is S, `step_signal` that of one round."""

    batch_size: float
    epochs: float
    lr: float
    momentum: float
    average_last: float
    rounds: int
    signal: float

    @property
    def step_signal(self) -> float:
        """The length of a clipped mean gradient, at most, over that of the noise on it."""
        return self.signal / math.sqrt(self.rounds)

    def to_json(self) -> dict[str, float]:
        """The numbers as plain data."""
        return asdict(self) | {"step_signal": self.step_signal}


def choose(
    public: Public,
    *,
    batch_size: float | None = None,
    epochs: float | None = None,
    lr: float | None = None,
    momentum: float | None = None,
    average_last: float | None = None,
) -> Chosen:
    """The settings of a run: what is said stays, and the rest follows from it and from public numbers.

    Averaging belongs to the rule's own steps: who says `lr` gets none without saying so.

    >>> found = choose(Public(size=32_561, parameters=218, epsilon=3.0, delta=1e-6))
    >>> found.batch_size, found.rounds, round(found.lr, 1)
    (1674, 1428, 4.0)
    """
    if batch_size is None or epochs is None:
        batch_size, epochs = _scale(public, batch_size, epochs)
    batch_size = min(batch_size, public.size)
    rounds = rounds_in(epochs, public.size, batch_size)
    signal = public.signal(batch_size, rounds)
    momentum = MOMENTUM if momentum is None else momentum
    if lr is not None:
        step = lr
    elif public.signs:  # Adam makes an average of signs, which is as long as one of them
        summed = momentum if public.optimizer == "sgd" else 0.0
        step = _sign_step(public, signal, rounds, public.spread(batch_size, rounds), summed)
    elif public.optimizer != "sgd":
        step = ADAM
    else:
        step = _step(public, signal, rounds)
    return Chosen(
        batch_size=batch_size,
        epochs=epochs,
        lr=step,
        momentum=momentum,
        average_last=average_last if average_last is not None else AVERAGED if lr is None else 0.0,
        rounds=rounds,
        signal=signal,
    )


def _scale(public: Public, batch_size: float | None, epochs: float | None) -> tuple[float, float]:
    """Batch and epochs, of which one may be said."""
    signal = public.mu * public.size / math.sqrt(public.parameters)
    rounds = min(max(FEWEST, round(signal)), MOST)
    if batch_size is None:
        if epochs is not None:  # a batch that wastes no more has no more rounds than this
            rounds = min(rounds, max(VERY_FEW, round((epochs * WASTE / public.mu) ** 2)))
        rate = public.mu / (WASTE * math.sqrt(rounds)) if epochs is None else epochs / rounds
        batch_size = min(public.size, max(SMALLEST, round(rate * public.size)))
    # Rounded down, so that as many rounds come out again.
    return batch_size, math.floor(1e4 * rounds * batch_size / public.size) / 1e4 if epochs is None else epochs


def _step(public: Public, signal: float, rounds: int) -> float:
    """The learning rate of SGD with momentum; its last digits mean nothing."""
    return float(f"{_length(public, signal, rounds) / public.max_grad_norm:.3g}")


def _sign_step(public: Public, signal: float, rounds: int, spread: float, momentum: float) -> float:
    """The learning rate of steps by signs, which have no scale of their own: that of SGD's steps on such noise."""
    as_many = (1 - momentum) / (1 - MOMENTUM)
    return float(f"{math.sqrt(math.pi / 2) * _length(public, signal, rounds) * spread * as_many:.3g}")


def _length(public: Public, signal: float, rounds: int) -> float:
    """How long a step of SGD with momentum is, in units of the clip norm."""
    longest = LONGEST_REGRESSION if public.task == "regression" else LONGEST
    length: float = min(longest, REACH * (signal / 100) ** GROWTH * signal / rounds)
    return length / math.sqrt(public.layers)
