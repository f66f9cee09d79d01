"""Known losses: what torch's own compare, and their short names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from reticent.errors import UnknownName
from reticent.losses.meeting import Kind
from reticent.losses.pairing import Answers


class OrdinalLoss(nn.Module):
    """Ranks 0 to K by K outputs, each the logit that the rank is above it; the cross-entropies are added up.

    >>> OrdinalLoss()(torch.zeros(2, 3), torch.tensor([0, 3])).round(decimals=3)
    tensor([2.0790, 2.0790])
    """

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        """One number for each example."""
        steps = torch.arange(output.shape[1], device=output.device)
        above = (target[:, None] > steps).to(output.dtype)
        return functional.binary_cross_entropy_with_logits(output, above, reduction="none").sum(1)


@dataclass(frozen=True)
class KnownLoss:
    """A loss by its name: the module, the function that does the same, what is learned, what the outputs stand for."""

    name: str
    module: type[nn.Module]
    function: Callable[..., Any] | None
    kind: Kind
    answers: Answers


KNOWN = (
    KnownLoss("cross_entropy", nn.CrossEntropyLoss, functional.cross_entropy, "classes", "logits"),
    KnownLoss("nll", nn.NLLLoss, functional.nll_loss, "classes", "logits"),
    KnownLoss("multi_margin", nn.MultiMarginLoss, functional.multi_margin_loss, "classes", "logits"),
    KnownLoss("bce", nn.BCEWithLogitsLoss, functional.binary_cross_entropy_with_logits, "binary", "logits"),
    KnownLoss("bce_of_probabilities", nn.BCELoss, functional.binary_cross_entropy, "binary", "probabilities"),
    KnownLoss(
        "multilabel_soft_margin",
        nn.MultiLabelSoftMarginLoss,
        functional.multilabel_soft_margin_loss,
        "binary",
        "logits",
    ),
    KnownLoss("ordinal", OrdinalLoss, None, "ordinal", "logits"),
    KnownLoss("mse", nn.MSELoss, functional.mse_loss, "regression", "values"),
    KnownLoss("mae", nn.L1Loss, functional.l1_loss, "regression", "values"),
    KnownLoss("huber", nn.HuberLoss, functional.huber_loss, "regression", "values"),
    KnownLoss("smooth_l1", nn.SmoothL1Loss, functional.smooth_l1_loss, "regression", "values"),
    KnownLoss("poisson", nn.PoissonNLLLoss, functional.poisson_nll_loss, "regression", "logs"),
)


@cache
def names() -> tuple[str, ...]:
    """The names that a loss may be given by.

    >>> "bce" in names()
    True
    """
    return tuple(known.name for known in KNOWN)


def by_name(name: str) -> nn.Module:
    """The loss of this name, as torch makes it.

    >>> by_name("huber")
    HuberLoss()
    """
    for known in KNOWN:
        if known.name == name:
            return known.module()
    raise UnknownName("loss", name, names())
