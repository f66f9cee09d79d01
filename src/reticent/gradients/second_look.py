"""A second look, at rounds chosen by chance: an alarm for what following the examples should make impossible."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from reticent.errors import ModelError
from reticent.gradients.batches import Batch, PerExampleLoss, chosen, chunks, size
from reticent.gradients.bookkeeping import books_of
from reticent.gradients.losses_alone import as_in_gradients
from reticent.gradients.mixing import losses_differ, without_chance
from reticent.gradients.planning import plan_of
from reticent.gradients.randomness import undisturbed, undo_attempt
from reticent.gradients.tape import NoRule
from reticent.gradients.task import LossTask


def gradients_are_own(
    model: nn.Module,
    per_example_loss: PerExampleLoss,
    batch: Batch,
    counted: Tensor,
    *,
    max_physical_batch_size: int | None = None,
) -> bool:
    """Say whether examples whose loss does not count get gradients of exactly zero, as the rules take them.

    `counted` is a mask over the batch, say a random half of it. Nothing but yes or no comes out; the model and
    torch's random states are left as they were. The general path takes each example alone and needs no second look.

    >>> x = torch.randn(4, 3)
    >>> gradients_are_own(nn.Linear(3, 1), lambda m, x: m(x).sum(1), x, torch.tensor([True, False, False, True]))
    True
    """
    task, n = LossTask.of(model, per_example_loss), size(batch)
    if n == 0:
        return True
    plan = plan_of(task, batch)
    if plan is None:
        return True
    most = min(plan.at_once, max_physical_batch_size or plan.at_once)
    parts = zip(chunks(batch, n, most), chunks(counted, n, most), strict=True)
    with undisturbed(model):
        for part, mask in parts:
            try:
                with books_of(task, part, plan, mask) as (_, norms):
                    others = norms[~mask.to(norms.device)]
                    if bool((others.isfinite() & (others != 0)).any()):
                        return False
            except NoRule:  # this part would take the general path
                undo_attempt()
                continue
    return True


def losses_are_own(model: nn.Module, per_example_loss: PerExampleLoss, batch: Batch, rows: Tensor) -> bool:
    """Say whether the losses of a few rows of a batch are the same when each of them is alone.

    Meant for a real micro-batch: made-up rows may not show that a loss is divided by what the batch holds. Layers of
    chance are held still; a model that draws by itself cannot be compared so and passes.

    >>> losses_are_own(nn.Linear(3, 1), lambda m, x: m(x).sum(1), torch.randn(4, 3), torch.tensor([0, 2]))
    True
    >>> losses_are_own(nn.Linear(3, 1), lambda m, x: m(x).sum(1) / len(x), torch.randn(4, 3), torch.tensor([0, 2]))
    False
    """
    task = LossTask.of(model, per_example_loss)
    layout = as_in_gradients(model, per_example_loss, batch)  # what is looked at is what answers are made of
    with undisturbed(model), torch.no_grad(), without_chance(), layout:
        rng = torch.get_rng_state()
        together = task.losses(batch)
        if not torch.equal(rng, torch.get_rng_state()):
            return True
        alone = [task.losses(chosen(batch, row.reshape(1)))[0] for row in rows]
        return not any(losses_differ(together[row], one, together) for row, one in zip(rows, alone, strict=True))


def must_not_be_released() -> ModelError:
    """The error for a second look that found something: it says what to do, and nothing of the examples."""
    return ModelError(
        "a second look at a round found that an example's gradient or loss depends on other examples, so that the "
        "promised privacy does not hold: this model must not be released, nor any other of this run; let every loss "
        "depend on its own example only (see `reticent.gradients.check`) and train again from the start"
    )
