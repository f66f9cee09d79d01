"""The papers' networks; none of them mixes examples, so none has BatchNorm."""

from reticent.models.activations import TemperedSigmoid, activation
from reticent.models.blueprint import Blueprint
from reticent.models.convolutional import cnn
from reticent.models.normalising import PublicNormalise, with_centre, with_fill, with_statistics
from reticent.models.plain import head, linear, mlp
from reticent.models.recurrent import ReviewRnn, rnn
from reticent.models.registry import build, names
from reticent.models.residual import WideResNet
from reticent.models.scattering import scattering_cnn, scattering_linear
from reticent.models.transformer import vit
from reticent.models.whitening import Whiten, with_whiten

__all__ = [
    "Blueprint",
    "PublicNormalise",
    "ReviewRnn",
    "TemperedSigmoid",
    "Whiten",
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
    "with_centre",
    "with_fill",
    "with_statistics",
    "with_whiten",
]
