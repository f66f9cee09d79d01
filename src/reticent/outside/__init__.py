"""The outer room: code here sees released numbers only, and may do anything with them."""

from reticent.outside.after import After
from reticent.outside.annealing import Annealed, PrivateAnswer, PublicHoldout
from reticent.outside.controls import Control, Steady
from reticent.outside.decay import ExponentialDecay, NoiseDecay, PolynomialDecay, StepDecay, TimeDecay
from reticent.outside.directions import Direction, Sign, Unchanged
from reticent.outside.gates import Charge, Gate, Open, Proposal
from reticent.outside.selective import NoisyTest, Selective, SmoothTest
from reticent.outside.trial import Trial

__all__ = [
    "After",
    "Annealed",
    "Charge",
    "Control",
    "Direction",
    "ExponentialDecay",
    "Gate",
    "NoiseDecay",
    "NoisyTest",
    "Open",
    "PolynomialDecay",
    "PrivateAnswer",
    "Proposal",
    "PublicHoldout",
    "Selective",
    "Sign",
    "SmoothTest",
    "Steady",
    "StepDecay",
    "TimeDecay",
    "Trial",
    "Unchanged",
]
