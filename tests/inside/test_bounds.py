"""Bounds keep their promise for every norm a float can hold, and sums for any model and data."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from reticent.accounting import Ledger, Unlimited
from reticent.inside import (
    Bound,
    Clip,
    Everyone,
    Flat,
    GradientSum,
    Normalise,
    Randomness,
    RoundSettings,
    Task,
    Vault,
    as_store,
)
from reticent.losses import cross_entropy

BOUNDS: dict[str, Bound] = {"clip": Clip(), "normalise": Normalise()}
norms = st.lists(
    st.floats(0, float(np.finfo(np.float32).max), width=32) | st.just(float("nan")), min_size=1, max_size=9
)


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS.keys())
@given(found=norms, clip=st.floats(1e-6, 1e6))
def test_no_gradient_is_longer_than_promised(bound: Bound, found: list[float], clip: float) -> None:
    settings, tensor = RoundSettings(10, 5, clip, 1.0), torch.tensor(found)
    weights = bound.weights(tensor, settings)
    assert torch.isfinite(weights).all()
    assert (weights[~torch.isfinite(tensor)] == 0).all()
    known = torch.isfinite(tensor)
    assert (tensor[known].double() * weights[known].double() <= bound.sensitivity(settings) * (1 + 1e-6)).all()


MODELS = {
    "linear": lambda: nn.Linear(6, 3),
    "mlp": lambda: nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.LayerNorm(5), nn.Linear(5, 3)),
    "conv": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 2, 3)), nn.Conv2d(1, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)
    ),
    "tied": lambda: Tied(),
}


class Tied(nn.Module):
    """One weight used twice: its gradient must be summed before its norm is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.out = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.tanh(self.inner(torch.tanh(self.inner(x)))))


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS.keys())
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), scale=st.sampled_from([1e-3, 1.0, 1e3]), clip=st.sampled_from([1e-2, 1.0, 30.0]))
def test_one_example_moves_the_sums_by_at_most_their_sensitivity(
    kind: str, bound: Bound, seed: int, scale: float, clip: float
) -> None:
    torch.manual_seed(seed)
    model = MODELS[kind]().double()
    x, y = scale * torch.randn(7, 6, dtype=torch.float64), torch.randint(0, 3, (7,))
    task, settings = Task(model, cross_entropy, Flat(model)), RoundSettings(7, 7, clip, 1.0)

    def ask(query: GradientSum, rows: slice) -> Tensor:
        examples = as_store((x[rows], y[rows]))
        vault = Vault(examples, randomness=Randomness.from_seed(0), ledger=Ledger(), allowance=Unlimited("a probe"))
        size = RoundSettings(len(examples), len(examples), clip, 1.0)
        return vault.ask(query, vault.draw(Everyone(), size))._value

    query = GradientSum(task, bound, settings)
    move = (ask(query, slice(0, 7)) - ask(query, slice(0, 6))).norm().item()
    assert move <= query.sensitivity * (1 + 1e-9)
