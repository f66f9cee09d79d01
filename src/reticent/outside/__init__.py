"""The outer room: code here sees released numbers only, and may do anything with them."""

from reticent.outside.adaptive import Adaptive, Listening
from reticent.outside.after import After
from reticent.outside.annealing import Annealed, PrivateAnswer, PublicHoldout
from reticent.outside.averaging import TailAverage
from reticent.outside.best_length import BestLength
from reticent.outside.controls import Control, Steady
from reticent.outside.decay import ExponentialDecay, NoiseDecay, PolynomialDecay, StepDecay, TimeDecay
from reticent.outside.deniability import PlausibleDeniability, RandomRejection
from reticent.outside.directions import Averaged, Direction, Sign
from reticent.outside.gates import Charge, Claiming, Gate, Open, Proposal, Terms
from reticent.outside.importance import NormPlan
from reticent.outside.selective import NoisyTest, Selective, SmoothTest
from reticent.outside.trial import Trial

__all__ = [
    "Adaptive",
    "After",
    "Annealed",
    "Averaged",
    "BestLength",
    "Charge",
    "Claiming",
    "Control",
    "Direction",
    "ExponentialDecay",
    "Gate",
    "Listening",
    "NoiseDecay",
    "NoisyTest",
    "NormPlan",
    "Open",
    "PlausibleDeniability",
    "PolynomialDecay",
    "PrivateAnswer",
    "Proposal",
    "PublicHoldout",
    "RandomRejection",
    "Selective",
    "Sign",
    "SmoothTest",
    "Steady",
    "StepDecay",
    "TailAverage",
    "Terms",
    "TimeDecay",
    "Trial",
]
