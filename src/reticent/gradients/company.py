"""A row in company: its loss and gradient are the same alone, among few and among many."""

from __future__ import annotations

import torch
from torch import Tensor

from reticent.errors import ModelError
from reticent.gradients.batches import Batch, chosen, size
from reticent.gradients.crowds import crowds
from reticent.gradients.general import gradients_of
from reticent.gradients.mixing import GRADIENT_ROUNDING, LOSS_ROUNDING, culprit, differs, losses_differ, without_chance
from reticent.gradients.task import LossTask

NORMALISE = "normalise within an example instead (nn.GroupNorm, nn.LayerNorm)"


def mixes(where: str, what: str) -> ModelError:
    """The error for a model whose examples are not apart."""
    return ModelError(
        f"{where} mixes examples: {what} of one example changes with the other examples of its batch; {NORMALISE}, "
        "and let every loss depend on its own example only, not on the size of the batch or a count over it"
    )


def runs_on(task: LossTask, batch: Batch) -> bool:
    """Whether the model takes these rows at all: some are for real ones only."""
    try:
        with torch.no_grad():
            task.losses(batch)
    except ModelError:
        raise
    except Exception:
        return False
    return True


def refuse_company(task: LossTask, base: Batch, most: int) -> None:
    """Compare rows of large batches with the same rows alone and among few, dropout held still."""

    def runs(batch: Batch) -> bool:
        return runs_on(task, batch)

    with without_chance():
        rng = torch.get_rng_state()
        runs(base)
        if not torch.equal(rng, torch.get_rng_state()):
            return  # the model draws by itself: batches of different sizes draw differently
        for number, crowd in enumerate(crowds(base, max(most, 2), runs)):
            _compare(task, crowd, gradients=number < 2)


def _compare(task: LossTask, crowd: Batch, *, gradients: bool) -> None:
    n = size(crowd)
    try:
        with torch.enable_grad():
            losses = task.losses(crowd)
    except ModelError:
        raise
    except Exception:  # rows of this kind are not for this model
        return
    ranked = losses.detach().nan_to_num().argsort()
    for row in dict.fromkeys([0, int(ranked[0]), int(ranked[-1]), n - 1]):
        few = chosen(crowd, torch.tensor([(row + 1) % n, row, (row + 2) % n]))
        companies = [(chosen(crowd, torch.tensor([row])), 0), (few, 1)]
        for company, place in companies if row == 0 else companies[:1]:
            with torch.enable_grad():
                other = task.losses(company)[place]
            if losses_differ(losses[row].detach(), other.detach(), losses.detach()):
                raise mixes(culprit(task, (company, place), (crowd, row), LOSS_ROUNDING), "the loss")
            if gradients and losses.requires_grad and row == 0 and _turned(task, losses[row], other):
                raise mixes(culprit(task, (company, place), (crowd, row), LOSS_ROUNDING), "the gradient")


def _turned(task: LossTask, one: Tensor, other: Tensor) -> bool:
    """Say whether the gradients of two losses differ, all parameters together: some have next to none."""
    mine, theirs = (
        torch.cat([part.flatten() for part in gradients_of(task, loss, again=True).values()]) for loss in (one, other)
    )
    return differs(mine, theirs, GRADIENT_ROUNDING)
