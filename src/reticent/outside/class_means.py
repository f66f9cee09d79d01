"""Class means: the weights of a linear layer that names the mean nearest in angle, out of noisy sums of classes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from reticent.errors import require
from reticent.inside import ClassSums, RoundSettings
from reticent.outside.solution import Solution

FEWEST = 0.3
"""No class is taken to have less than so much of the average: noise could leave it nothing to divide by."""
SURELY = 3.0
"""Beyond so many deviations of the noise nothing is thought to be chance."""
NEVER = -1.0
"""The bias of such a class: so much lies it below the mean of the others, and so below the best of them."""
TOGETHER = 0.7
"""How near what is taken for a mean lies to what the directions say that classes share, and not number by number."""


@dataclass(frozen=True)
class NearestMean(Solution):
    """To the layer that names the class whose mean points most nearly where a row does.

    Not the mean that is nearest: what shrinking leaves of a mean's length tells of its noise, not of its class.
    With many classes and few examples of each, most of what tells noisy means apart is noise, so they are drawn towards
    the mean of all classes, as far as noise explains how they differ: number by number (James & Stein 1961), and in
    directions that classes share (Efron & Morris 1972). Each sees what the other misses; the answer lies between.
    """

    rule: ClassSums = ClassSums()  # noqa: RUF009 - stages are frozen
    scale: float = 60.0
    """What cosines are multiplied by, so that a softmax tells classes apart."""

    def __post_init__(self) -> None:
        require(0 < self.scale < math.inf, f"scale must be above 0 and finite, not {self.scale}")

    def solve(self, mean: Tensor, noise: float, settings: RoundSettings, parameters: int) -> Tensor:
        """Weights and biases: all means as long as each other, so that the angle alone decides."""
        means, there = self.means(mean, noise)
        biases = torch.where(there, 0.0, NEVER * self.scale).to(means)
        weights = functional.normalize(means, dim=1) * (self.scale / settings.max_grad_norm)
        weights[~there] = weights[there].mean(0)
        if parameters == weights.shape[1] + 1:  # one output: by how much the second class is nearer
            weights, biases = weights[1:] - weights[:1], biases[1:] - biases[:1]
        return torch.cat([weights.reshape(-1), biases])

    def means(self, sums: Tensor, noise: float) -> tuple[Tensor, Tensor]:
        """The means of the classes, in units of the clip norm, and which of them there are; of others it is 0.

        A line of sums has the count of its class behind it.

        >>> rule = NearestMean(ClassSums(0.6))
        >>> rule.means(torch.tensor([[8.0, 0.0, 6.0], [0.0, 8.0, 6.0], [0.0, 0.0, 0.0]]).double(), 0.0)
        (tensor([[1., 0.],
                [0., 1.],
                [0., 0.]], dtype=torch.float64), tensor([ True,  True, False]))
        """
        head, body = self.rule.head, self.rule.body
        seen, doubt = sums[:, -1] / head, noise / head
        there = not_surely_absent(seen, doubt)
        counts = shrunk(seen[there, None], seen.new_full((int(there.sum()), 1), doubt), seen[there].mean())
        counts = torch.maximum(counts, (FEWEST * counts.mean()).clamp(min=1.0))
        middle = sums[there, :-1].sum(0) / (body * counts.sum())
        rows, doubts = sums[there, :-1] / (body * counts), noise / (body * counts)
        alone, together = shrunk(rows, doubts, middle), shrunk_together(rows, doubts, middle)
        means = torch.zeros_like(sums[:, :-1])
        means[there] = torch.lerp(alone, together, TOGETHER)
        return means, there


def not_surely_absent(seen: Tensor, doubt: float) -> Tensor:
    """Which classes have examples: all but those whose noisy count may be none and cannot be as large as is usual.

    Usual is what the class of an average example has. Where noise hides all counts, all classes are taken to be there;
    the largest is there in any case, or there would be nothing to name.

    >>> not_surely_absent(torch.tensor([500.0, 480.0, -7.0, 24.0]), 10.0)
    tensor([ True,  True, False, False])
    >>> not_surely_absent(torch.tensor([31.0, -7.0, 24.0]), 10.0)
    tensor([True, True, True])
    """
    total = float(seen.sum())
    if total <= SURELY * doubt * math.sqrt(len(seen)):
        return torch.ones_like(seen, dtype=torch.bool)
    usual = float((seen.square() - doubt**2).sum()) / total
    return (seen > SURELY * doubt) | (seen > usual - SURELY * doubt) | (seen == seen.max())


def shrunk(seen: Tensor, noise: Tensor, middle: Tensor) -> Tensor:
    """Every column drawn towards its middle, each entry as far as noise explains its variance.

    >>> shrunk(torch.tensor([[1.0], [3.0]]), torch.tensor([[0.0], [0.0]]), torch.tensor([2.0])).flatten()
    tensor([1., 3.])
    >>> shrunk(torch.tensor([[1.0], [3.0]]), torch.tensor([[2.0], [2.0]]), torch.tensor([2.0])).flatten()
    tensor([2., 2.])
    """
    apart = seen - middle
    variance = (apart.square().sum(0) / max(1, len(seen) - 1) - noise.square().mean(0)).clamp(min=0)
    kept = variance / (variance + noise.square()).clamp(min=torch.finfo(seen.dtype).tiny)
    return torch.where(noise > 0, middle + apart * kept, seen)


def shrunk_together(seen: Tensor, noise: Tensor, middle: Tensor) -> Tensor:
    """Every direction in which rows differ from the middle drawn in, as far as noise explains its length.

    In units of its noise a matrix of nothing but noise has about as much, squared, in each of the few directions of its
    short side as its long side is long (Efron & Morris 1972, "Empirical Bayes on vector observations").

    >>> shrunk_together(torch.tensor([[0.0, 9.0], [0.0, -9.0]]), torch.tensor([[0.0], [0.0]]), torch.zeros(2))
    tensor([[ 0.,  9.],
            [ 0., -9.]])
    >>> shrunk_together(torch.tensor([[0.0, 9.0], [0.0, -9.0]]), torch.tensor([[3.0], [3.0]]), torch.zeros(2)).round()
    tensor([[ 0.,  8.],
            [ 0., -8.]])
    """
    if not bool((noise > 0).all()):
        return seen
    left, lengths, right = torch.linalg.svd((seen - middle) / noise, full_matrices=False)
    squared = lengths.square().clamp(min=torch.finfo(seen.dtype).tiny)
    kept = lengths * (1 - max(seen.shape) / squared).clamp(min=0)
    found: Tensor = middle + noise * ((left * kept) @ right)
    return found
