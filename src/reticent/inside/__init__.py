"""The inner room: code here may see examples, and lets nothing out except through the vault's door."""

from reticent.inside.bounds import Bound, Clip
from reticent.inside.coins import Coins
from reticent.inside.dials import Dials
from reticent.inside.draws import Draw, Everyone, Poisson, Sampler
from reticent.inside.mechanisms import GaussianNoise, Mechanism
from reticent.inside.queries import GradientSum, LossChange, NormSum, Query
from reticent.inside.sealed import Sealed
from reticent.inside.store import Batch, Store, store
from reticent.inside.task import Flat, Loss, Task
from reticent.inside.vault import Vault

__all__ = [
    "Batch",
    "Bound",
    "Clip",
    "Coins",
    "Dials",
    "Draw",
    "Everyone",
    "Flat",
    "GaussianNoise",
    "GradientSum",
    "Loss",
    "LossChange",
    "Mechanism",
    "NormSum",
    "Poisson",
    "Query",
    "Sampler",
    "Sealed",
    "Store",
    "Task",
    "Vault",
    "store",
]
