"""The audited toy: a model whose per-example gradients are known, base examples, and one canary."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import torch
from torch import Tensor, nn

from reticent.accounting import Budget
from reticent.audits.one_layer import CLASSES, finds_one_layer, labelled, widest
from reticent.errors import PrivacyWarning
from reticent.inside import Clip, Everyone, GaussianNoise, GradientSum, Normalise, Poisson
from reticent.inside.by_layer import ByLayer
from reticent.methods import Method
from reticent.outside import Adaptive, Averaged, Open, Sign, Steady
from reticent.run import Run

Examples = tuple[Tensor, Tensor]
SIZE, ADAPTIVE_SIZE = 8, 1000
"""The canary and seven base examples; methods that plan their noise by the number of examples need more of them."""

NO_LIMIT = Budget(1e12, 1e-5, accountant="rdp")
"""An audit repeats one step many times; it is each step that is judged, not their sum."""

SOME_LIMIT = Budget(8.0, 1e-5, accountant="rdp")
"""What a method that plans its noise while it runs may plan with."""


def is_adaptive(method: Method) -> bool:
    """Whether the noise of a step depends on what was released before it."""
    return isinstance(method.control, Adaptive) or isinstance(method.gate, Adaptive)


def size_for(method: Method) -> int:
    """How many examples the toy needs for a method."""
    return ADAPTIVE_SIZE if is_adaptive(method) else SIZE


def keeps_apart(method: Method) -> bool:
    """Whether numbers of a step that no example has in common have nothing to do with each other.

    Then copies of the toy side by side in one model are as good as steps of their own. Only what is known to is let
    pass: a subclass may do anything.
    """
    return (
        type(method.sampler) in (Poisson, Everyone)
        and type(method.bound) in (Clip, Normalise, ByLayer)
        and method.query is GradientSum
        and method.noise is GaussianNoise
        and type(method.direction) in (Averaged, Sign)
        and type(method.gate) is Open
    )


class Known(nn.Module):
    """Answers are linear in the parameters, so an example (x, scale) has gradient (x_1, scale x_2, scale).

    Of several copies each has parameters of its own; an example is of the copy where its numbers are.
    """

    def __init__(self, width: int, copies: int = 1):
        super().__init__()
        self.first = nn.Linear(copies * width, 1, bias=False)
        self.second = nn.Linear(width, copies)

    def forward(self, x: Tensor, scale: Tensor) -> Tensor:
        """One number an example."""
        left, right = x[:, : self.first.in_features], x[:, self.first.in_features :]
        answer: Tensor = self.first(left)[:, 0] + (scale * self.second(right)).sum(1)
        return answer

    def moved(self, change: Tensor) -> Tensor:
        """Changes of all parameters, in rows, as those of each copy: one row for each row and copy."""
        copies, width = self.second.weight.shape
        parts = torch.split(change, [copies * width, copies * width, copies], dim=1)
        return torch.cat([part.reshape(len(change), copies, -1) for part in parts], 2).reshape(-1, 2 * width + 1)


def known_loss(model: nn.Module, batch: Examples) -> Tensor:
    """The answer is the loss."""
    answer: Tensor = model(*batch)
    return answer


def examples(canary_norm: float, *, size: int = SIZE, width: int = 4, quiet: bool = False, copies: int = 1) -> Examples:
    """Base examples whose gradients are orthogonal to the canary's; norm 0 is a canary that is absent.

    The canary's gradient lies in a weight of each layer and in the bias, in equal parts. `quiet`: no gradients at all.
    Each copy has as many examples as one, with the same numbers and a canary of its own.
    """
    rng = torch.Generator().manual_seed(0)
    left, right, scale = torch.zeros(size, width), torch.zeros(size, width), torch.zeros(size, 1)
    if not quiet:
        left[1:, 1:] = torch.randn(size - 1, width - 1, generator=rng)
    part = canary_norm / math.sqrt(3)
    left[0, 0], right[0, 0], scale[0, 0] = part, 1.0, part
    whose = torch.eye(copies)
    return torch.cat([torch.kron(whose, left), right.repeat(copies, 1)], 1), torch.kron(whose, scale)


def direction(width: int = 4) -> Tensor:
    """The canary's gradient, at length 1."""
    unit = torch.zeros(2 * width + 1)
    unit[[0, width, 2 * width]] = 1 / math.sqrt(3)
    return unit


def make_run(method: Method, data: Examples, *, batch_size: float, rounds: int, seed: int | None) -> Run:
    """A run of the real loop on the toy, with plain SGD at rate 1 and settings that stay as they are."""
    copies = data[1].shape[1]
    width = data[0].shape[1] // (copies + 1)
    one = finds_one_layer(method)
    rows = labelled(data, widest(method)) if one else data
    model = nn.Linear(rows[0].shape[1], CLASSES) if one else Known(width, copies)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # delta is above 1 / 8 of an example, and nobody is in the toy
        return Run(
            model,
            optimizer,
            rows,
            method=method if is_adaptive(method) else replace(method, control=Steady()),
            batch_size=batch_size,
            loss="cross_entropy" if one else known_loss,
            rounds=rounds,
            budget=SOME_LIMIT if is_adaptive(method) else NO_LIMIT,
            seed=seed,
        )


def place(run: Run) -> Tensor:
    """The parameters as one vector."""
    return torch.cat([parameter.detach().reshape(-1) for parameter in run.model.parameters()]).clone()
