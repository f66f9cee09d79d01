"""The papers' networks; none of them mixes examples, so none has BatchNorm."""

from reticent.models.activations import TemperedSigmoid, activation
from reticent.models.cnn import cnn
from reticent.models.plain import head, linear, mlp
from reticent.models.registry import build, names
from reticent.models.rnn import ReviewRnn, rnn
from reticent.models.scattering import scattering_cnn, scattering_linear
from reticent.models.vit import VitFeatures, vit
from reticent.models.wrn import WideResNet

__all__ = [
    "ReviewRnn",
    "TemperedSigmoid",
    "VitFeatures",
    "WideResNet",
    "activation",
    "build",
    "cnn",
    "head",
    "linear",
    "mlp",
    "names",
    "rnn",
    "scattering_cnn",
    "scattering_linear",
    "vit",
]
