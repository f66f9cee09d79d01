"""Planted bugs: real mistakes of real libraries, for audits to find; each breaks one piece while it is planted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reticent.accounting import Subsampled
from reticent.errors import UnknownName
from reticent.gradients import norms, norms_and_sum
from reticent.inside.coins import Coins
from reticent.inside.dials import Dials
from reticent.inside.draws import Draw, Poisson
from reticent.inside.mechanisms import GaussianNoise
from reticent.inside.queries import GradientSum
from reticent.inside.sealed import Sealed
from reticent.inside.taken import Taken
from reticent.inside.vault import Vault

Code = Callable[..., Any]


@dataclass(frozen=True)
class Bug:
    """One wrong piece: `broken` makes it out of the right one."""

    name: str
    says: str
    owner: type
    attribute: str
    broken: Callable[[Code], Code]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The piece is wrong inside, and right again afterwards."""
        right = self.owner.__dict__[self.attribute]
        setattr(self.owner, self.attribute, self.broken(right))
        try:
            yield
        finally:
            setattr(self.owner, self.attribute, right)


_BUGS: dict[str, Bug] = {}


def bugs() -> list[Bug]:
    """Every bug that can be planted."""
    return list(_BUGS.values())


def find(name: str) -> Bug:
    """A bug by its name.

    >>> find("no-noise").says
    'the noise is forgotten'
    """
    if name not in _BUGS:
        raise UnknownName("planted bug", name, _BUGS)
    return _BUGS[name]


def _bug(owner: type, attribute: str, says: str) -> Callable[[Callable[[Code], Code]], Callable[[Code], Code]]:
    def note(broken: Callable[[Code], Code]) -> Callable[[Code], Code]:
        name = broken.__name__.strip("_").replace("_", "-")
        _BUGS[name] = Bug(name, says, owner, attribute, broken)
        return broken

    return note


# -- clipping ----------------------------------------------------------------------------------------------------


@_bug(GradientSum, "_weigh", "gradients are not clipped")
def _no_clip(_right: Code) -> Code:
    return lambda _self, found: torch.ones_like(found)


@_bug(GradientSum, "_weigh", "the clip factor uses the square of the norm")
def _clip_by_square(_right: Code) -> Code:
    return lambda self, found: (self.dials.max_grad_norm / found.square()).clamp(max=1.0)


@_bug(GradientSum, "answer", "the mean of the batch is clipped, not each example")
def _clip_batch_mean(_right: Code) -> Code:
    def answer(self: GradientSum, taken: Taken) -> Tensor:
        total, limit = _unclipped(self, taken), self.dials.max_grad_norm * max(len(taken.draw._index), 1)
        return total * min(1.0, limit / max(float(total.norm()), 1e-12))

    return answer


@_bug(GradientSum, "answer", "every layer is clipped to the whole bound")
def _clip_per_layer(_right: Code) -> Code:
    def answer(self: GradientSum, taken: Taken) -> Tensor:
        task, total = self.task, torch.zeros_like(self.task.flat.vector)
        views, trainable = task.flat.views(total), dict(task.model.named_parameters())
        for batch in taken.batches():
            for name in views:
                with _frozen([p for other, p in trainable.items() if other != name]):
                    norms_and_sum(task.model, task.loss, batch, self._weigh, into={name: views[name]})
        return total

    return answer


@_bug(GradientSum, "answer", "the norm forgets the biases")
def _forgotten_bias(_right: Code) -> Code:
    def answer(self: GradientSum, taken: Taken) -> Tensor:
        task, total = self.task, torch.zeros_like(self.task.flat.vector)
        for batch in taken.batches():
            with _frozen([p for p in task.model.parameters() if p.ndim == 1]):
                weights = self.bound.weights(norms(task.model, task.loss, batch), self.dials)
            norms_and_sum(task.model, task.loss, batch, partial(_given, weights), into=task.flat.views(total))
        return total

    return answer


@contextmanager
def _frozen(parameters: list[torch.nn.Parameter]) -> Iterator[None]:
    free = [p for p in parameters if p.requires_grad]
    for parameter in free:
        parameter.requires_grad_(False)
    yield
    for parameter in free:
        parameter.requires_grad_(True)


def _given(weights: Tensor, _norms: Tensor) -> Tensor:
    return weights


def _unclipped(query: GradientSum, taken: Taken) -> Tensor:
    task, total = query.task, torch.zeros_like(query.task.flat.vector)
    for batch in taken.batches():
        norms_and_sum(task.model, task.loss, batch, torch.ones_like, into=task.flat.views(total))
    return total


# -- noise -------------------------------------------------------------------------------------------------------


@_bug(GaussianNoise, "_open", "the noise is forgotten")
def _no_noise(_right: Code) -> Code:
    return lambda _self, sealed, _coins: sealed._value.clone()


def _rescaled(right: Code, factor: Callable[[Sealed], float]) -> Code:
    """The same noise, times a factor."""

    def opened(self: GaussianNoise, sealed: Sealed, coins: np.random.Generator) -> Tensor:
        noise: Tensor = right(self, sealed, coins) - sealed._value
        return sealed._value + factor(sealed) * noise

    return opened


@_bug(GaussianNoise, "_open", "the noise has half the standard deviation it should have")
def _half_noise(right: Code) -> Code:
    return _rescaled(right, lambda _sealed: 0.5)


@_bug(GaussianNoise, "_open", "the noise is divided by the batch size twice")
def _noise_over_batch(right: Code) -> Code:
    return _rescaled(right, lambda sealed: 1 / sealed.draw.dials.batch_size)


@_bug(GaussianNoise, "_open", "the noise ignores the clip norm")
def _noise_without_clip_norm(right: Code) -> Code:
    return _rescaled(right, lambda sealed: 1 / sealed.sensitivity)


@_bug(GaussianNoise, "_open", "the second half of the parameters gets no noise")
def _noise_on_some(right: Code) -> Code:
    def opened(self: GaussianNoise, sealed: Sealed, coins: np.random.Generator) -> Tensor:
        released: Tensor = right(self, sealed, coins)
        half = released.numel() // 2
        released.view(-1)[half:] = sealed._value.view(-1)[half:]
        return released

    return opened


@_bug(GaussianNoise, "_open", "the noise has the precision of bfloat16")
def _coarse_noise(right: Code) -> Code:
    def opened(self: GaussianNoise, sealed: Sealed, coins: np.random.Generator) -> Tensor:
        noise: Tensor = right(self, sealed, coins) - sealed._value
        return sealed._value + noise.bfloat16().to(noise.dtype)

    return opened


@_bug(Coins, "at", "every round has the same noise")
def _reused_noise(right: Code) -> Code:
    return lambda self, *place: right(self, *(("noise",) if "noise" in place else place))


@_bug(Vault, "release", "an empty draw gets no noise")
def _no_noise_when_empty(right: Code) -> Code:
    def release(self: Vault, sealed: Sealed, mechanism: Any) -> Tensor:
        released: Tensor = right(self, sealed, mechanism)
        return released if len(sealed.draw._index) else sealed._value.clone()

    return release


@_bug(Vault, "release", "the sum is divided by the size of the draw, not by the declared batch size")
def _realised_batch_size(right: Code) -> Code:
    def release(self: Vault, sealed: Sealed, mechanism: Any) -> Tensor:
        released: Tensor = right(self, sealed, mechanism)
        return released * (sealed.draw.dials.batch_size / max(len(sealed.draw._index), 1))

    return release


# -- draws -------------------------------------------------------------------------------------------------------


def _drawn(choose: Callable[[Dials, np.random.Generator], Any]) -> Code:
    def draw(self: Poisson, dials: Dials, coins: np.random.Generator, *_memory: Any) -> Draw:
        return Draw(np.sort(np.asarray(choose(dials, coins), dtype=np.int64)), self, dials)

    return draw


@_bug(Poisson, "draw", "batches come from a shuffled epoch, accounted as Poisson")
def _shuffled_batches(_right: Code) -> Code:
    def choose(dials: Dials, _coins: np.random.Generator) -> Any:
        size = max(1, round(dials.batch_size))
        epoch, place = divmod(dials.number, max(1, dials.size // size))
        order = np.random.default_rng(epoch).permutation(dials.size)
        return order[place * size : (place + 1) * size]

    return _drawn(choose)


@_bug(Poisson, "draw", "batches have a fixed size, accounted as Poisson")
def _fixed_size(_right: Code) -> Code:
    return _drawn(lambda dials, coins: coins.choice(dials.size, max(1, round(dials.batch_size)), replace=False))


@_bug(Poisson, "draw", "everybody takes part, whatever the rate")
def _everybody_drawn(_right: Code) -> Code:
    return _drawn(lambda dials, _coins: np.arange(dials.size))


@_bug(Poisson, "draw", "the rate is a tenth higher than declared")
def _rate_a_tenth_higher(_right: Code) -> Code:
    return _drawn(lambda dials, coins: np.flatnonzero(coins.random(dials.size) < 1.1 * dials.rate))


@_bug(Poisson, "draw", "an empty draw is drawn again")
def _empty_redrawn(_right: Code) -> Code:
    def choose(dials: Dials, coins: np.random.Generator) -> Any:
        while not len(found := np.flatnonzero(coins.random(dials.size) < dials.rate)):
            pass
        return found

    return _drawn(choose)


@_bug(Poisson, "draw", "the first half of the examples is drawn twice as often as the second")
def _weighted_draw(_right: Code) -> Code:
    def choose(dials: Dials, coins: np.random.Generator) -> Any:
        lean = np.where(np.arange(dials.size) < dials.size // 2, 4 / 3, 2 / 3)
        return np.flatnonzero(coins.random(dials.size) < dials.rate * lean)

    return _drawn(choose)


@_bug(Coins, "at", "every round draws the same examples")
def _same_draw(right: Code) -> Code:
    return lambda self, *place: right(self, *(("draw",) if "draw" in place else place))


# -- accounting --------------------------------------------------------------------------------------------------


@_bug(GaussianNoise, "event", "the ledger is told twice the noise there is")
def _ledger_too_kind(right: Code) -> Code:
    return lambda self: right(replace(self, noise_multiplier=2 * self.noise_multiplier))


@_bug(Poisson, "amplify", "the ledger is told half the rate there is")
def _rate_too_kind(_right: Code) -> Code:
    return lambda _self, event, dials: Subsampled(dials.rate / 2, event)


@_bug(Vault, "_write", "an empty draw is not written into the ledger")
def _empty_not_charged(right: Code) -> Code:
    def write(self: Vault, event: Any, sealed: Sealed) -> None:
        if len(sealed.draw._index):
            right(self, event, sealed)

    return write
