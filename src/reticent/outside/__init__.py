"""The outer room: code here sees released numbers only, and may do anything with them."""

from reticent.outside.adaptive import Adaptive, Listening
from reticent.outside.after import After
from reticent.outside.averaging import TailAverage
from reticent.outside.class_means import NearestMean
from reticent.outside.controls import Control, Steady
from reticent.outside.directions import Averaged, Direction, Remembered, Remembering, Sign
from reticent.outside.dpagd import BestLength
from reticent.outside.dpis import NormPlan
from reticent.outside.dpsur import NoisyTest, Selective, SmoothTest
from reticent.outside.gates import Charge, Claiming, Gate, Open, Outcome, Proof, Proposal, Releases
from reticent.outside.kalman import Kalman
from reticent.outside.least_squares import Solved
from reticent.outside.low_pass import LowPass
from reticent.outside.noise_decay import ExponentialDecay, NoiseDecay, PolynomialDecay, StepDecay, TimeDecay
from reticent.outside.pd_sgd import PlausibleDeniability, RandomRejection
from reticent.outside.quantile import QuantileClip
from reticent.outside.sa_dpsgd import Annealed, PrivateAnswer, PublicHoldout
from reticent.outside.trial import Trial
from reticent.outside.unmixed import Unmixed

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
    "Kalman",
    "Listening",
    "LowPass",
    "NearestMean",
    "NoiseDecay",
    "NoisyTest",
    "NormPlan",
    "Open",
    "Outcome",
    "PlausibleDeniability",
    "PolynomialDecay",
    "PrivateAnswer",
    "Proof",
    "Proposal",
    "PublicHoldout",
    "QuantileClip",
    "RandomRejection",
    "Releases",
    "Remembered",
    "Remembering",
    "Selective",
    "Sign",
    "SmoothTest",
    "Solved",
    "Steady",
    "StepDecay",
    "TailAverage",
    "TimeDecay",
    "Trial",
    "Unmixed",
]
