"""The rule for mixtures of experts, as Mixtral and its kind have them: each row times the matrix of its own expert."""

from __future__ import annotations

import torch
from torch import Tensor

from reticent.gradients.forms.experts import outer_by_expert
from reticent.gradients.registry import rule
from reticent.gradients.uses import Forms, Use


@rule(torch._grouped_mm, located=False)
def grouped_mm(use: Use, rows: Tensor, matrices: Tensor, *, offs: Tensor, **_nothing: None) -> Tensor:
    """Outer products of rows, kept apart by example and expert; `following` has seen to it that `offs` are right."""
    routing = use.routing(rows)
    turned = use.turned(matrices)
    given = matrices if turned is None else turned

    def forms(gradient: Tensor) -> Forms:
        left, right = (rows, gradient) if turned is None else (gradient, rows)
        yield given, outer_by_expert(routing, len(given), left.detach(), right)

    output: Tensor = torch._grouped_mm(rows, use.plain(matrices), offs=offs)
    return use.tap(output, (given,), forms, saved=(rows,))
