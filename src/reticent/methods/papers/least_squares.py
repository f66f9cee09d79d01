"""DP least squares: a linear model in closed form, from statistics that are released once."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.inside import Everyone, Statistics
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd
from reticent.outside import Solved


def least_squares(
    *,
    noise_multiplier: float | None = None,
    max_grad_norm: float = 1.0,
    balance: float = 2.0,
    ridge: float = 0.5,
    scale: float = 10.0,
) -> Method:
    """Ridge regression on the classes, of noisy Gram matrix and products (Mehta et al. 2022; Wang 2018).

    >>> least_squares(noise_multiplier=1.0).direction
    Solved(balance=2.0, ridge=0.5, scale=10.0)
    """
    base = dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    solved = Solved(balance, ridge, scale)
    return replace(base, name="least_squares", sampler=Everyone(), query=Statistics(balance), direction=solved)


ABOUT = About(
    name="least_squares",
    make=least_squares,
    kind="baseline",
    title="DP least squares",
    paper="Mehta et al. 2022, Differentially Private Image Classification from Features; Wang 2018 (AdaSSP)",
    changes="draw (everyone), query (Gram matrix and products with the classes), direction: the solution itself",
    guarantee="proved: one Gaussian release",
    equations={
        "A = sum of x x^T, b = sum of x y^T, of bounded rows": "inside/least_squares.py StatisticsQuery",
        "(A + ridge I)^-1 b": "outside/least_squares.py Solved",
    },
    options={
        "max_grad_norm": "no row of features is longer: longer ones are cut",
        "balance": "what products with the classes count beside products of features, in the noise",
        "ridge": "the ridge, in units of what noise adds to an eigenvalue",
        "scale": "what the solution is multiplied by, so that a softmax tells classes apart",
    },
    preset={"epochs": 1.0, "lr": 1.0, "momentum": 0.0, "average_last": 0.0},
)
