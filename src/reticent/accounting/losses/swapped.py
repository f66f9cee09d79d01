"""Privacy loss distributions on draws of fixed size, and on Poisson draws that are cut to a size."""

from __future__ import annotations

import numpy as np

from reticent.accounting.losses.distribution import Loss
from reticent.accounting.losses.gaussian import gaussian_loss


def swapped_loss(rate: float, noise_multiplier: float, step: float) -> Loss:
    """The loss of the pair in renyi/swapped.py, the same in both directions.

    Above 0 it has the masses of the sampled Gaussian that moves twice as far; a loss of -l has exp(-l) of the mass at
    l, and what is left is at 0. Deltas are exact at the points of the grid, as theirs are.

    >>> loss = swapped_loss(0.1, 2.0, 1e-3)
    >>> round(float(loss.mass.sum() + loss.infinite), 12)
    1.0
    """
    whole, _ = gaussian_loss(rate, noise_multiplier / 2, step)
    above = whole.mass[1 - whole.lowest :]
    below = above * np.exp(-step * np.arange(1, len(above) + 1))
    rest = max(0.0, 1 - whole.infinite - float(above.sum() + below.sum()))
    return Loss(step, -len(above), np.concatenate([below[::-1], [rest], above]), whole.infinite)


def mixed_loss(share: float, one: Loss, other: Loss) -> Loss:
    """The loss of two mechanisms, the second with a chance of `share`, where it is told which it was."""
    lowest = min(one.lowest, other.lowest)
    mass = np.zeros(max(loss.lowest + len(loss.mass) for loss in (one, other)) - lowest)
    for loss, chance in ((one, 1 - share), (other, share)):
        mass[loss.lowest - lowest :][: len(loss.mass)] += chance * loss.mass
    return Loss(one.step, lowest, mass, (1 - share) * one.infinite + share * other.infinite)
