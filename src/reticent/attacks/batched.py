"""Many models trained at once: their parameters are stacked, and every step is one call for all of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from reticent.attacks.signals import Ints
from reticent.errors import SettingError


@dataclass(frozen=True)
class ShadowRecipe:
    """Plain SGD on Poisson draws: how a target without privacy was trained, and so how its shadows must be."""

    steps: int
    batch_size: float
    learning_rate: float
    momentum: float = 0.0
    weight_decay: float = 0.0


def steps_for(epochs: float, records: int, batch_size: float) -> int:
    """How many Poisson draws see each record `epochs` times on average.

    >>> steps_for(2, 100, 10)
    20
    """
    return max(1, math.ceil(epochs * records / batch_size))


def train_together(
    models: Sequence[nn.Module],
    x: Tensor,
    y: Tensor,
    members: Sequence[Ints],
    recipe: ShadowRecipe,
    seeds: Sequence[int],
) -> list[nn.Module]:
    """Train models[i] on the records members[i] with coins of its own; the same result as one after another.

    >>> nets = [nn.Linear(2, 2) for _ in range(2)]
    >>> rows = [torch.arange(3).numpy(), torch.arange(2).numpy()]
    >>> recipe = ShadowRecipe(steps=2, batch_size=2, learning_rate=0.1)
    >>> len(train_together(nets, torch.randn(4, 2), torch.zeros(4, dtype=torch.long), rows, recipe, [0, 1]))
    2
    """
    if any(True for model in models for _ in model.buffers()):
        raise SettingError("a model with buffers (running statistics) cannot be trained in a batch: use processes")
    stacked, _ = stack_module_state(list(models))
    params = {name: value.detach().clone().requires_grad_() for name, value in stacked.items()}
    optimizer = torch.optim.SGD(
        params.values(), lr=recipe.learning_rate, momentum=recipe.momentum, weight_decay=recipe.weight_decay
    )
    answer = _together(models[0])
    draws = _Draws(members, recipe.batch_size, seeds)
    for index, weight in islice(draws, recipe.steps):
        # The models share nothing, so the gradient of the summed loss is each model's own: one backward pass for all.
        losses = cross_entropy(answer(params, x[index]).flatten(0, 1), y[index].flatten(), reduction="none")
        optimizer.zero_grad()
        torch.autograd.backward(losses @ weight.flatten().to(losses.dtype) / recipe.batch_size)
        optimizer.step()
    return _unstacked(models, params)


class _Draws:
    """Poisson draws for all models, padded to the longest with records of weight 0.

    The coins of many steps are tossed in one call: many small calls would cost more than the steps themselves.
    """

    BLOCK = 32

    def __init__(self, members: Sequence[Ints], batch_size: float, seeds: Sequence[int]):
        self._randomness = [torch.Generator().manual_seed(seed) for seed in seeds]
        self._rows = pad_sequence([torch.as_tensor(chosen) for chosen in members], batch_first=True)
        self._rates = [batch_size / len(chosen) for chosen in members]
        self._sizes = [len(chosen) for chosen in members]

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Which records each model sees in a step, and which of these places are filled; for ever."""
        while True:
            tossed = self._toss()
            step, model, column = tossed.nonzero(as_tuple=True)
            counts = tossed.sum(2)
            before = (counts.flatten().cumsum(0) - counts.flatten()).view_as(counts)
            place = torch.arange(len(step)) - before[step, model]
            index = torch.zeros(*counts.shape, max(1, int(counts.max())), dtype=torch.long)
            index[step, model, place] = self._rows[model, column]
            filled = torch.arange(index.shape[2]) < counts[..., None]
            for one, full, longest in zip(index, filled, counts.amax(1).clamp(min=1).tolist(), strict=True):
                yield one[:, :longest], full[:, :longest]

    def _toss(self) -> Tensor:
        tossed = torch.zeros(self.BLOCK, *self._rows.shape, dtype=torch.bool)
        for place, (coin, size, rate) in enumerate(zip(self._randomness, self._sizes, self._rates, strict=True)):
            tossed[:, place, :size] = torch.rand(self.BLOCK, size, generator=coin) < rate
        return tossed


Answer = Callable[[dict[str, Tensor], Tensor], Tensor]
"""(stacked parameters, models x batch x inputs) -> models x batch x classes."""

ELEMENTWISE = (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.LeakyReLU, nn.Identity)


def _together(model: nn.Module) -> Answer:
    """One forward pass for all models: plain matrix products for an MLP, which vmap would only make slower."""
    if isinstance(model, nn.Sequential) and all(
        isinstance(part, (nn.Linear, nn.Flatten, *ELEMENTWISE)) for part in model
    ):
        return partial(_mlp, model)
    skeleton = copy.deepcopy(model).to("meta")
    return vmap(lambda own, inputs: functional_call(skeleton, own, (inputs,)), randomness="different")


def _mlp(model: nn.Sequential, params: dict[str, Tensor], inputs: Tensor) -> Tensor:
    for name, part in model.named_children():
        match part:
            case nn.Linear():
                weight, bias = params[f"{name}.weight"].transpose(1, 2), params.get(f"{name}.bias")
                inputs = inputs @ weight if bias is None else torch.baddbmm(bias[:, None], inputs, weight)
            case nn.Flatten():
                inputs = inputs.flatten(2)
            case _:
                inputs = part(inputs)
    return inputs


def _unstacked(models: Sequence[nn.Module], params: dict[str, Tensor]) -> list[nn.Module]:
    trained = []
    for place, model in enumerate(models):
        copied = copy.deepcopy(model)
        copied.load_state_dict({name: value[place].detach() for name, value in params.items()})
        trained.append(copied)
    return trained
