"""Methods: one paper, one small file: DP-SGD with a stage replaced."""

from reticent.methods.method import Method
from reticent.methods.plan import Plan, plan
from reticent.methods.registry import get, listing, names, options

# isort: split
# The makers come last: each has the name of its module, and is what the name should mean.
from reticent.methods.auto_s import auto_s
from reticent.methods.dpagd import dpagd
from reticent.methods.dpis import dpis
from reticent.methods.dpsgd import dpadam, dpsgd
from reticent.methods.dpsign import dpsign_adam, dpsign_sgd
from reticent.methods.dpsur import dpsur
from reticent.methods.noise_decay import noise_decay
from reticent.methods.pd_sgd import pd_sgd
from reticent.methods.sa_dpsgd import sa_dpsgd

list = listing

__all__ = [
    "Method",
    "Plan",
    "auto_s",
    "dpadam",
    "dpagd",
    "dpis",
    "dpsgd",
    "dpsign_adam",
    "dpsign_sgd",
    "dpsur",
    "get",
    "list",
    "listing",
    "names",
    "noise_decay",
    "options",
    "pd_sgd",
    "plan",
    "sa_dpsgd",
]
