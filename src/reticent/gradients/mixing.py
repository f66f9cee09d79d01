"""Where examples are mixed: the first module whose answer to one row depends on the other rows."""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import TorchFunctionMode

from reticent.gradients.batches import Batch, size, tensors
from reticent.gradients.following import Args, Function, Kwargs
from reticent.gradients.task import LossTask

Call: TypeAlias = tuple[str, list[Tensor], list[Tensor]]

# The same row in another company is computed in the same order: what differs more than this is not rounding.
ROUNDING = 1e-4
# Batches of different sizes are computed in a different order, and a ReLU may turn; what mixes does far more.
LOSS_ROUNDING, GRADIENT_ROUNDING = 1e-3, 2e-2


def differs(one: Tensor, other: Tensor, rounding: float = ROUNDING) -> bool:
    """Say whether two results differ by more than rounding; what is not finite is not compared.

    >>> differs(torch.ones(2), torch.tensor([1.0, 1.01]))
    True
    """
    if one.shape != other.shape:
        return True
    if not one.is_floating_point():
        return not torch.equal(one, other)
    if not (one.isfinite().all() and other.isfinite().all()):
        return False
    return bool((one - other).norm() > rounding * (one.norm() + other.norm()) + 1e-12)


def losses_differ(one: Tensor, other: Tensor, all_losses: Tensor) -> bool:
    """Say whether a row's losses in batches of different sizes differ by more than these round.

    A loss close to 0 is the difference of larger numbers: it is compared on the scale of all losses.

    >>> losses = torch.tensor([1.0, 1e-7])
    >>> losses_differ(losses[1], torch.tensor(3e-7), losses), losses_differ(losses[0], torch.tensor(1.01), losses)
    (False, True)
    """
    finite = all_losses[all_losses.isfinite()].abs()
    if not (one.isfinite() and other.isfinite()) or not len(finite):
        return False
    return bool((one - other).abs() > LOSS_ROUNDING * (one.abs() + other.abs()) + LOSS_ROUNDING / 10 * finite.mean())


class _Still(TorchFunctionMode):
    """Answers layers of chance as they are at rest, so that passes of different sizes can be compared."""

    def __torch_function__(
        self, func: Function, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        kwargs = kwargs or {}
        if func in _DROPOUTS:
            return args[0]
        if func in _RECURRENT:
            settings = 6 if isinstance(args[3], list) else 5
            args = (*args[:settings], 0.0, *args[settings + 1 :])
        elif func is functional.multi_head_attention_forward:
            args = (*args[:10], 0.0, *args[11:])
        elif func is functional.scaled_dot_product_attention:
            args, kwargs = args[:4], {**kwargs, "dropout_p": 0.0}
        return func(*args, **kwargs)


_DROPOUTS = {
    functional.dropout, functional.dropout1d, functional.dropout2d, functional.dropout3d, functional.alpha_dropout,
    functional.feature_alpha_dropout,
}  # fmt: skip
_RECURRENT = {torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu}


def without_chance() -> TorchFunctionMode:
    """Hold dropout still, wherever it is, until the block ends.

    >>> with without_chance():
    ...     functional.dropout(torch.ones(3), 0.9)
    tensor([1., 1., 1.])
    """
    return _Still()


def culprit(task: LossTask, one: tuple[Batch, int], other: tuple[Batch, int], rounding: float = ROUNDING) -> str:
    """Name the first module that answers a row differently in another batch, though it is asked the same."""
    rng = torch.get_rng_state()
    first = _calls(task, *one)
    torch.set_rng_state(rng)
    second = _calls(task, *other)
    for (path, asked, answered), (_, asked_again, answered_again) in zip(first, second, strict=False):
        if any(differs(a, b, rounding) for a, b in zip(asked, asked_again, strict=False)):
            return f"something before module {path!r}"
        if any(differs(a, b, rounding) for a, b in zip(answered, answered_again, strict=False)):
            return f"module {path!r} ({type(task.model.get_submodule(path)).__name__})"
    return "the loss"


def _calls(task: LossTask, batch: Batch, row: int) -> list[Call]:
    """Every innermost module called, with its own row of what it was given and of what it gave."""
    seen: list[Call] = []
    n = size(batch)

    def rows(values: object) -> list[Tensor]:
        each = values if type(values) is tuple else (values,)
        found = (value for one in each if not isinstance(one, PackedSequence) for value in tensors(one))
        return [value.detach()[row].clone() for value in found if value.ndim and len(value) == n]

    hooks = []
    for path, module in task.model.named_modules():
        if not any(True for _ in module.children()):

            def note(_: nn.Module, given: object, gave: object, path: str = path) -> None:
                seen.append((path, rows(given), rows(gave)))

            hooks.append(module.register_forward_hook(note))
    try:
        with torch.no_grad():
            task.losses(batch)
    finally:
        for hook in hooks:
            hook.remove()
    return seen
