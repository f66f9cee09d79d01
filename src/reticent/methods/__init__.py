"""Methods: one paper, one small file: DP-SGD with a stage replaced."""

from reticent.methods.dpsgd import dpadam, dpsgd
from reticent.methods.method import Method
from reticent.methods.plan import Plan, plan
from reticent.methods.registry import get, names

__all__ = ["Method", "Plan", "dpadam", "dpsgd", "get", "names", "plan"]
