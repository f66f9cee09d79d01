"""Class means: a linear model that names the class whose mean is nearest in angle, from sums that are released once."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.inside import ClassSums, Everyone
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd
from reticent.outside import NearestMean


def class_means(
    *, noise_multiplier: float | None = None, max_grad_norm: float = 1.0, head: float = 0.2, scale: float = 60.0
) -> Method:
    """Nearest shrunken means of classes (Wahdany et al. 2025, DPPL-Mean; Tibshirani et al. 2002).

    >>> class_means(noise_multiplier=1.0).query
    ClassSums(head=0.2)
    """
    base = dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    sums = ClassSums(head)
    return replace(base, name="class_means", sampler=Everyone(), query=sums, direction=NearestMean(sums, scale))


ABOUT = About(
    name="class_means",
    make=class_means,
    kind="baseline",
    title="Class means",
    paper="Wahdany et al. 2025, Differentially Private Prototypes for Imbalanced Transfer Learning; James & Stein 1961",
    changes="draw (everyone), query (the sum of each class), direction: the layer that names the mean nearest in angle",
    guarantee="proved: one Gaussian release",
    equations={
        "the sum of each class's bounded features": "inside/class_sums.py ClassSumsQuery",
        "the class of the nearest mean, by cosine": "outside/class_means.py NearestMean",
    },
    options={
        "max_grad_norm": "no row of features is longer: longer ones are cut, and all should be about as long",
        "head": "how much of a row's length its class's count has: more is less noise on counts, more on sums",
        "scale": "what cosines are multiplied by, so that a softmax tells classes apart",
    },
    preset={"epochs": 1.0, "lr": 1.0, "momentum": 0.0, "average_last": 0.0},
)
