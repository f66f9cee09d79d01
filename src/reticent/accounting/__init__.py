"""What was released and what it costs: numbers only, no tensors, no torch."""

from reticent.accounting.adjacency import Adjacency
from reticent.accounting.budget import Allowance, Budget, Planned, RenyiFilter, Unlimited
from reticent.accounting.events import (
    AnnealedRelease,
    BestTrial,
    BinInTurn,
    Composed,
    Concentrated,
    Event,
    FixedSize,
    Gaussian,
    Laplace,
    NoisyMax,
    OnceIn,
    PartInTurn,
    Repeated,
    RoundOfStream,
    SelectiveAttempt,
    SelectiveRelease,
    Subsampled,
    Truncated,
    Unbounded,
)
from reticent.accounting.guarantee import Guarantee
from reticent.accounting.ledger import Entry, Ledger, Mark
from reticent.accounting.losses.tradeoff import mu, power
from reticent.accounting.pricing import Price, epsilon, price
from reticent.accounting.renyi.curves import ORDERS, curve
from reticent.accounting.spending import Spending

__all__ = [
    "ORDERS",
    "Adjacency",
    "Allowance",
    "AnnealedRelease",
    "BestTrial",
    "BinInTurn",
    "Budget",
    "Composed",
    "Concentrated",
    "Entry",
    "Event",
    "FixedSize",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "Ledger",
    "Mark",
    "NoisyMax",
    "OnceIn",
    "PartInTurn",
    "Planned",
    "Price",
    "RenyiFilter",
    "Repeated",
    "RoundOfStream",
    "SelectiveAttempt",
    "SelectiveRelease",
    "Spending",
    "Subsampled",
    "Truncated",
    "Unbounded",
    "Unlimited",
    "curve",
    "epsilon",
    "mu",
    "power",
    "price",
]
