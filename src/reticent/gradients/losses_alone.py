"""Losses alone, for answers that need no gradients: in the layout of images in which those are made."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from reticent.gradients.batches import Batch, PerExampleLoss, size
from reticent.gradients.images import ChannelsLast
from reticent.gradients.planning import plan_of
from reticent.gradients.task import LossTask


def as_in_gradients(model: nn.Module, loss: PerExampleLoss, batch: Batch) -> AbstractContextManager[object]:
    """The layout of images in which gradients of the model are made, for passes that need none.

    It was tried on made-up rows, convolutions that are not trained among them: a model that takes views of its images
    gets them as usual.
    """
    with torch.enable_grad():  # whoever asks may need none, but the plan is proved with them
        plan = plan_of(LossTask.of(model, loss), batch) if size(batch) else None
    return ChannelsLast() if plan is not None and plan.losses_channels_last else nullcontext()


def losses_of(model: nn.Module, loss: PerExampleLoss, batch: Batch) -> Tensor:
    """The loss of each example, in that layout.

    >>> losses_of(nn.Linear(2, 1), lambda model, x: 0 * model(x)[:, 0], torch.ones(3, 2)).detach()
    tensor([0., 0., 0.])
    """
    with as_in_gradients(model, loss, batch):
        return loss(model, batch)
