"""Many classifiers, each on rows of its own: stacked where that is faster, so that one step is one call for all."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.functional import cross_entropy

from reticent.defences.chains import is_chain, small_steps
from reticent.defences.plain import Plain, Tell, batches, device_of, fit, known_chance, step

STACKED_BYTES = 32 * 2**20
"""Above this, one step's inputs for all models outgrow the cache, and stacking is slower than taking turns."""


def fit_together(
    models: Sequence[nn.Module],
    x: Tensor,
    y: Tensor,
    rows: Sequence[Tensor],
    plain: Plain,
    *,
    rounds: int,
    seeds: Sequence[int],
    tell: Tell,
) -> None:
    """Train models[i] on rows[i] of `(x, y)`; stacked or one after another, each sees the same batches.

    >>> nets = [nn.Sequential(nn.Linear(2, 2)) for _ in range(3)]
    >>> x, y, rows = torch.randn(6, 2), torch.zeros(6, dtype=torch.long), [torch.arange(6)[i::2] for i in range(3)]
    >>> fit_together(nets, x, y, rows, Plain(), rounds=2, seeds=[1, 2, 3], tell=print)
    3
    3
    """
    width = x[0].numel() * x.element_size()
    if is_chain(models[0]) and len(models) * plain.batch_size * width <= STACKED_BYTES:
        fit_stacked(models, x, y, rows, plain, rounds=rounds, seeds=seeds, tell=tell)
        return
    for model, own, seed in zip(models, rows, seeds, strict=True):
        fit(model, x, y, own, plain, rounds=rounds, seed=seed, tell=tell)


def fit_stacked(
    models: Sequence[nn.Module],
    x: Tensor,
    y: Tensor,
    rows: Sequence[Tensor],
    plain: Plain,
    *,
    rounds: int,
    seeds: Sequence[int],
    tell: Tell,
) -> None:
    """Train all models at once: their parameters are stacked, and nothing of one ever meets another."""
    device = device_of(models[0])
    params, _ = stack_module_state(list(models))
    optimizer = plain.optimizer(params.values())
    skeleton = copy.deepcopy(models[0]).to("meta").train()
    answer = vmap(lambda own, inputs: functional_call(skeleton, own, (inputs,)), randomness="different")
    drawn = [batches(own, plain.batch_size, seed) for own, seed in zip(rows, seeds, strict=True)]
    with known_chance(seeds[0]), small_steps(models, plain.batch_size):
        for _ in range(rounds):
            batch = torch.stack([next(each) for each in drawn])
            logits = answer(params, x[batch].to(device))
            # A mean for each model, summed: each model's gradient is that of its own mean.
            losses = cross_entropy(logits.flatten(0, 1), y[batch].flatten().to(device), reduction="sum")
            step(optimizer, losses / plain.batch_size)
            tell(len(models))
    for place, model in enumerate(models):
        model.load_state_dict({name: part[place].detach() for name, part in params.items()})
