"""The papers' networks; none of them mixes examples, so none has BatchNorm."""

from reticent.models.activations import TemperedSigmoid, activation
from reticent.models.cnn import cnn
from reticent.models.plain import head, linear, mlp
from reticent.models.registry import build, names

__all__ = ["TemperedSigmoid", "activation", "build", "cnn", "head", "linear", "mlp", "names"]
