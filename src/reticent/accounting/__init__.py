"""What was released and what it costs: numbers only, no tensors, no torch."""

from reticent.accounting.adjacency import Adjacency
from reticent.accounting.budget import Allowance, Budget, ConcentratedFilter, Planned, RenyiFilter, Unlimited
from reticent.accounting.calibrate import batch_size, noise_multiplier, rounds, sample_rate, steps
from reticent.accounting.events import (
    AnnealedRelease,
    Composed,
    Concentrated,
    Event,
    Gaussian,
    Laplace,
    NoisyMax,
    SelectiveAttempt,
    SelectiveRelease,
    Subsampled,
    Tally,
    Unbounded,
)
from reticent.accounting.guarantee import Guarantee
from reticent.accounting.ledger import Entry, Ledger
from reticent.accounting.losses.tradeoff import deltas, mu, power
from reticent.accounting.pricing import Price, epsilon, price
from reticent.accounting.renyi.curves import ORDERS, curve

__all__ = [
    "ORDERS",
    "Adjacency",
    "Allowance",
    "AnnealedRelease",
    "Budget",
    "Composed",
    "Concentrated",
    "ConcentratedFilter",
    "Entry",
    "Event",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "Ledger",
    "NoisyMax",
    "Planned",
    "Price",
    "RenyiFilter",
    "SelectiveAttempt",
    "SelectiveRelease",
    "Subsampled",
    "Tally",
    "Unbounded",
    "Unlimited",
    "batch_size",
    "curve",
    "deltas",
    "epsilon",
    "mu",
    "noise_multiplier",
    "power",
    "price",
    "rounds",
    "sample_rate",
    "steps",
]
