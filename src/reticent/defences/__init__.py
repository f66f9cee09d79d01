"""Defences that are only tested, never proved: AdvReg and SELENA, baselines that claim no epsilon."""

from reticent.defences.advreg import AdvReg
from reticent.defences.plain import Plain
from reticent.defences.registry import abouts, defend, names, options, rows_used
from reticent.defences.selena import Selena
from reticent.defences.split_ai import SplitAI

__all__ = [
    "AdvReg",
    "Plain",
    "Selena",
    "SplitAI",
    "abouts",
    "defend",
    "names",
    "options",
    "rows_used",
]
