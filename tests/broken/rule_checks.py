"""Checks of the rules for gradients: what a proof on a few rows could not show is seen in each pass."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from reticent.gradients import norms_and_sum

ROWS = 5  # more than planning looks at


def _the_same_as_each_alone(forward: Callable[[nn.Module, Tensor], Tensor], **parts: nn.Module) -> None:
    torch.manual_seed(0)
    model, x = nn.ModuleDict(parts), torch.randn(ROWS, 6, 4)

    def losses(model: nn.Module, x: Tensor) -> Tensor:
        return forward(model, x).flatten(1).square().sum(1)

    norms, sums = norms_and_sum(model, losses, x, lambda norms: (0.5 / norms).clamp(max=1))
    each = [torch.autograd.grad(losses(model, one[None]).sum(), list(model.parameters())) for one in x]
    own = torch.stack([torch.cat([part.flatten() for part in parts]) for parts in each])
    torch.testing.assert_close(norms, own.norm(dim=1), rtol=1e-4, atol=1e-5)
    total = ((0.5 / own.norm(dim=1)).clamp(max=1)[:, None] * own).sum(0)
    torch.testing.assert_close(torch.cat([one.flatten() for one in sums.values()]), total, rtol=1e-4, atol=1e-5)


def places_of_an_earlier_pass_are_not_used() -> None:
    """The second pass has tokens where the first had examples, in tensors of the same sizes."""
    torch.manual_seed(0)
    model, x, turned = nn.Linear(4, 4), torch.randn(ROWS, ROWS, 4), [False]

    def losses(model: nn.Module, x: Tensor) -> Tensor:
        y = model(x.transpose(0, 1)).transpose(0, 1) if turned[-1] else model(x)
        return y.square().sum((1, 2))

    for now in (False, True, False):
        turned.append(now)
        norms, _ = norms_and_sum(model, losses, x, lambda norms: (0.5 / norms).clamp(max=1))
        each = [torch.autograd.grad(losses(model, one[None]).sum(), list(model.parameters())) for one in x]
        own = torch.stack([torch.cat([part.flatten() for part in parts]).norm() for parts in each])
        torch.testing.assert_close(norms, own, rtol=1e-4, atol=1e-5)


def a_layer_without_a_proof_is_not_trusted() -> None:
    """Made-up rows lie between 0 and 1 and bring it zeros only; real rows bring more."""

    def forward(m: nn.Module, x: Tensor) -> Tensor:
        return m["out"](x) + (x - 1).relu() * m["layer"](x)

    _the_same_as_each_alone(forward, layer=nn.Linear(4, 4), out=nn.Linear(4, 4))


def who_picks_the_token_of_another_is_seen() -> None:
    """In a large batch each example gets its neighbour's token."""

    def forward(m: nn.Module, x: Tensor) -> Tensor:
        rows = torch.arange(len(x)) if len(x) < ROWS else torch.arange(len(x)).roll(1)
        return m["out"](x)[rows, torch.zeros(len(x), dtype=torch.int64)] * x[:, 0]

    _the_same_as_each_alone(forward, out=nn.Linear(4, 4))


def rows_by_the_place_in_the_batch_are_seen() -> None:
    """In a large batch each example looks up another row."""

    def forward(m: nn.Module, x: Tensor) -> Tensor:
        rows = torch.zeros(len(x), dtype=torch.int64) if len(x) < ROWS else torch.arange(len(x))
        return x + m["table"](rows[:, None])

    _the_same_as_each_alone(forward, table=nn.Embedding(ROWS, 4))


def tokens_by_the_place_in_the_batch_are_seen() -> None:
    """In a large batch each example gets the token of its number."""

    def forward(m: nn.Module, x: Tensor) -> Tensor:
        rows = torch.arange(len(x))
        return m["out"](x)[rows, rows if len(x) == ROWS else torch.zeros_like(rows)]

    _the_same_as_each_alone(forward, out=nn.Linear(4, 4))


def weights_by_rank_are_seen() -> None:
    """In a large batch each example is weighed by the place of another in their order."""

    def forward(m: nn.Module, x: Tensor) -> Tensor:
        weights = torch.arange(len(x)) if len(x) == ROWS else torch.ones(len(x), dtype=torch.int64)
        return m["out"](x) * weights.index_select(0, x[:, 0, 0].argsort())[:, None, None]

    _the_same_as_each_alone(forward, out=nn.Linear(4, 4))


def a_refusal_that_the_model_catches_ends_the_pass() -> None:
    """Whether all agree on the answer is decided by all of them."""

    def forward(m: nn.Module, x: Tensor) -> Tensor:
        try:
            small = x.max().item() <= 1.7
        except Exception:
            small = False
        return m["out"](x if small else 2 * x)

    _the_same_as_each_alone(forward, out=nn.Linear(4, 4))


def _by_expert(x: Tensor, matrices: Tensor, rows_each: int, bent: Callable[[Tensor], Tensor]) -> Tensor:
    """Every number of a token chooses an expert for the token, by its sign."""
    experts, order = torch.sort((x > 0).long().flatten())
    ends = torch.histc(experts.float(), bins=2, min=0, max=1).cumsum(0, dtype=torch.int32)
    rows = torch._grouped_mm(x.flatten(0, 1)[order // rows_each], matrices, offs=ends)
    return bent(rows)[order.argsort()].view(len(x), -1)


class _Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.matrices = nn.Parameter(torch.randn(2, 4, 4))


def tokens_of_others_at_an_expert_are_seen() -> None:
    """In a large batch the order that belongs to numbers is taken for one of pairs of tokens."""

    def forward(m: nn.Module, x: Tensor) -> Tensor:
        return _by_expert(x, m["experts"].matrices, 4 if len(x) < ROWS else 8, lambda rows: rows)

    _the_same_as_each_alone(forward, experts=_Experts())


def rows_by_their_rank_at_an_expert_are_seen() -> None:
    """In a large batch every row is weighed by how many come before it."""

    def forward(m: nn.Module, x: Tensor) -> Tensor:
        def bent(rows: Tensor) -> Tensor:
            return rows * torch.arange(len(rows))[:, None] if len(x) == ROWS else rows

        return _by_expert(x, m["experts"].matrices, 4, bent)

    _the_same_as_each_alone(forward, experts=_Experts())


CHECKS: list[Callable[[], None]] = [
    places_of_an_earlier_pass_are_not_used,
    a_layer_without_a_proof_is_not_trusted,
    who_picks_the_token_of_another_is_seen,
    rows_by_the_place_in_the_batch_are_seen,
    tokens_by_the_place_in_the_batch_are_seen,
    weights_by_rank_are_seen,
    a_refusal_that_the_model_catches_ends_the_pass,
    tokens_of_others_at_an_expert_are_seen,
    rows_by_their_rank_at_an_expert_are_seen,
]
