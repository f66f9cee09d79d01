"""The inner room: code here may see examples, and lets nothing out except through the vault's door."""

from reticent.inside.banded import Bands, Cyclic
from reticent.inside.bins import BallsInBins
from reticent.inside.bounds import Bound, Clip, Normalise
from reticent.inside.buffered import Buffers, PartsInTurn, StreamNoise
from reticent.inside.by_layer import ByLayer, Divided, Division
from reticent.inside.class_sums import ClassSums
from reticent.inside.converting import converted, readable
from reticent.inside.dpagd import BestOf, StepScores
from reticent.inside.dpis import ByNorm, FreshNorms, Headcount, ImportanceSettings, NormTotal, UnitDirection, UnitSum
from reticent.inside.drawn import Drawn
from reticent.inside.draws import Draw, Everyone, Poisson, Restricted, Sampler
from reticent.inside.least_squares import Statistics
from reticent.inside.mechanisms import AcceptanceCoin, GaussianNoise, Mechanism
from reticent.inside.mixed import MixedSum, Mixing
from reticent.inside.pd_sgd import AsItIs, BatchGradient, Deniable, FixedNoise, Partition
from reticent.inside.persons import Persons, by_person
from reticent.inside.probe import Opening, Probe
from reticent.inside.quantile import CountedSum
from reticent.inside.queries import GradientSum, LossChange, LossGain, Query
from reticent.inside.randomness import Randomness
from reticent.inside.right_answers import RightAnswers
from reticent.inside.sealed import Sealed
from reticent.inside.settings import RoundSettings
from reticent.inside.sized import Capped, OfFixedSize
from reticent.inside.store import Batch, Store, Tabular, as_store
from reticent.inside.task import Flat, Loss, Task, refuse_lazy
from reticent.inside.vault import Vault

__all__ = [
    "AcceptanceCoin",
    "AsItIs",
    "BallsInBins",
    "Bands",
    "Batch",
    "BatchGradient",
    "BestOf",
    "Bound",
    "Buffers",
    "ByLayer",
    "ByNorm",
    "Capped",
    "ClassSums",
    "Clip",
    "CountedSum",
    "Cyclic",
    "Deniable",
    "Divided",
    "Division",
    "Draw",
    "Drawn",
    "Everyone",
    "FixedNoise",
    "Flat",
    "FreshNorms",
    "GaussianNoise",
    "GradientSum",
    "Headcount",
    "ImportanceSettings",
    "Loss",
    "LossChange",
    "LossGain",
    "Mechanism",
    "MixedSum",
    "Mixing",
    "NormTotal",
    "Normalise",
    "OfFixedSize",
    "Opening",
    "Partition",
    "PartsInTurn",
    "Persons",
    "Poisson",
    "Probe",
    "Query",
    "Randomness",
    "Restricted",
    "RightAnswers",
    "RoundSettings",
    "Sampler",
    "Sealed",
    "Statistics",
    "StepScores",
    "Store",
    "StreamNoise",
    "Tabular",
    "Task",
    "UnitDirection",
    "UnitSum",
    "Vault",
    "as_store",
    "by_person",
    "converted",
    "readable",
    "refuse_lazy",
]
