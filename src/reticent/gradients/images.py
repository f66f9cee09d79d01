"""Images with their channels last: convolutions on a processor take a third of the time so, forward passes too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from reticent.gradients.batches import Batch, PerExampleLoss, size
from reticent.gradients.planning import plan_of
from reticent.gradients.rules.convolution import channels_last
from reticent.gradients.task import LossTask


class ChannelsLast(TorchFunctionMode):
    """Two-dimensional convolutions inside have their channels last, and so have images that come of them.

    >>> with ChannelsLast():
    ...     image = functional.conv2d(torch.ones(1, 2, 3, 3), torch.ones(2, 2, 1, 1))
    >>> image.is_contiguous(memory_format=torch.channels_last)
    True
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is functional.conv2d and len(args) > 1 and args[0].ndim == 4:
            args = (*channels_last(args[0], args[1]), *args[2:])
        return func(*args, **(kwargs or {}))


def as_in_gradients(model: nn.Module, loss: PerExampleLoss, batch: Batch) -> AbstractContextManager[object]:
    """The layout of images in which gradients of the model are made, for passes that need none.

    It was tried on made-up rows: a model that takes views of its images gets them as usual.
    """
    with torch.enable_grad():  # whoever asks may need none, but the plan is proved with them
        plan = plan_of(LossTask.of(model, loss), batch) if size(batch) else None
    return ChannelsLast() if plan is not None and plan.channels_last else nullcontext()


def losses_of(model: nn.Module, loss: PerExampleLoss, batch: Batch) -> Tensor:
    """The loss of each example, in that layout.

    >>> losses_of(nn.Linear(2, 1), lambda model, x: 0 * model(x)[:, 0], torch.ones(3, 2)).detach()
    tensor([0., 0., 0.])
    """
    with as_in_gradients(model, loss, batch):
        return loss(model, batch)
