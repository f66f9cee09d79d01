"""The inner room: code here may see examples, and lets nothing out except through the vault's door."""

from reticent.inside.bounds import Bound, Clip, Normalise
from reticent.inside.choices import BestOf, StepScores
from reticent.inside.coins import Coins
from reticent.inside.deniability import AsItIs, BatchGradient, Deniable, FixedNoise, Partition
from reticent.inside.dials import Dials
from reticent.inside.draws import Choosy, Draw, Everyone, Poisson, Sampler
from reticent.inside.importance import ByNorm, FreshNorms, NormTotal, UnitDirection, UnitSum
from reticent.inside.mechanisms import AcceptanceCoin, GaussianNoise, Mechanism
from reticent.inside.queries import GradientSum, LossChange, LossGain, NormSum, Query
from reticent.inside.sealed import Sealed
from reticent.inside.store import Batch, Store, store
from reticent.inside.taken import Taken
from reticent.inside.task import Flat, Loss, Task
from reticent.inside.vault import Vault

__all__ = [
    "AcceptanceCoin",
    "AsItIs",
    "Batch",
    "BatchGradient",
    "BestOf",
    "Bound",
    "ByNorm",
    "Choosy",
    "Clip",
    "Coins",
    "Deniable",
    "Dials",
    "Draw",
    "Everyone",
    "FixedNoise",
    "Flat",
    "FreshNorms",
    "GaussianNoise",
    "GradientSum",
    "Loss",
    "LossChange",
    "LossGain",
    "Mechanism",
    "NormSum",
    "NormTotal",
    "Normalise",
    "Partition",
    "Poisson",
    "Query",
    "Sampler",
    "Sealed",
    "StepScores",
    "Store",
    "Taken",
    "Task",
    "UnitDirection",
    "UnitSum",
    "Vault",
    "store",
]
