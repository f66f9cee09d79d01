"""Many models at once are the same models as one after another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from reticent.attacks.batched import ShadowRecipe, _Draws, train_together
from reticent.errors import SettingError


class Wrapped(nn.Module):
    """The same network, but not one whose parts can be seen."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2, bias=False))


@pytest.mark.parametrize("make", [mlp, Wrapped])
def test_together_is_the_same_as_alone(make: Callable[[], nn.Module]) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        models = [make() for _ in range(3)]
        x, y = torch.randn(40, 3), torch.randint(0, 2, (40,))
        rows = [np.arange(0, 20), np.arange(10, 40), np.arange(5, 30)]
        recipe = ShadowRecipe(steps=40, batch_size=8, learning_rate=0.1, momentum=0.5, weight_decay=0.01)
        together = train_together(models, x, y, rows, recipe, [1, 2, 3])
        for place, trained in enumerate(together):
            (alone,) = train_together([models[place]], x, y, [rows[place]], recipe, [place + 1])
            for ours, theirs in zip(trained.parameters(), alone.parameters(), strict=True):
                torch.testing.assert_close(ours, theirs)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("model", [nn.Linear(3, 2), nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))])
def test_a_step_is_that_of_plain_sgd_on_the_same_draw(model: nn.Module) -> None:
    x, y = torch.randn(20, 3), torch.randint(0, 2, (20,))
    recipe = ShadowRecipe(steps=1, batch_size=5, learning_rate=0.5)
    index, filled = next(iter(_Draws([np.arange(20)], 5, [7])))
    (trained,) = train_together([model], x, y, [np.arange(20)], recipe, [7])
    drawn = index[0][filled[0]]
    nn.functional.cross_entropy(model(x[drawn]), y[drawn], reduction="sum").div(5).backward()
    for ours, before in zip(trained.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours, before - 0.5 * before.grad)


def test_draws_are_poisson_from_each_models_own_records() -> None:
    rows = [np.arange(0, 30), np.arange(100, 110)]
    draws = iter(_Draws(rows, 3, [0, 1]))
    sizes = np.zeros((2, 800))
    for step in range(800):
        index, filled = next(draws)
        for model in range(2):
            drawn = index[model][filled[model]].numpy()
            assert set(drawn) <= set(rows[model])
            assert len(set(drawn)) == len(drawn)
            sizes[model, step] = len(drawn)
    np.testing.assert_allclose(sizes.mean(axis=1), 3, atol=0.3)
    np.testing.assert_allclose(sizes.var(axis=1), [3 * 0.9, 3 * 0.7], rtol=0.25)


def test_the_given_models_are_left_alone() -> None:
    model = nn.Linear(2, 2)
    before = model.weight.detach().clone()
    recipe = ShadowRecipe(steps=3, batch_size=2, learning_rate=1.0)
    train_together([model], torch.randn(4, 2), torch.zeros(4, dtype=torch.long), [np.arange(4)], recipe, [0])
    assert torch.equal(model.weight, before)


def test_running_statistics_are_refused() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    with pytest.raises(SettingError, match="buffers"):
        train_together([model], torch.zeros(2, 2), torch.zeros(2).long(), [np.arange(2)], ShadowRecipe(1, 1, 0.1), [0])
