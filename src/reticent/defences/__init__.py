"""Defences that are only tested, never proved: AdvReg and SELENA, baselines that claim no epsilon."""

from reticent.defences.advreg import AdvReg, Regularised
from reticent.defences.defended import Defended
from reticent.defences.plain import Plain
from reticent.defences.registry import abouts, defend, names, options, rows_used
from reticent.defences.selena import Distilled, Selena
from reticent.defences.split_ai import SplitAI

__all__ = [
    "AdvReg",
    "Defended",
    "Distilled",
    "Plain",
    "Regularised",
    "Selena",
    "SplitAI",
    "abouts",
    "defend",
    "names",
    "options",
    "rows_used",
]
