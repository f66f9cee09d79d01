"""A task: a model, its loss for every example, and the parameters that are trained."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from reticent.errors import ModelError
from reticent.gradients.batches import Batch, PerExampleLoss, size


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """Name the parameters that are trained; a tied one appears once.

    >>> list(trainable(nn.Linear(2, 1)))
    ['weight', 'bias']
    """
    parameters = _trainable(model)
    if not parameters:
        raise ModelError(f"{type(model).__name__} has no trainable parameter; set requires_grad on those to train")
    return parameters


def _trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """What `named_parameters` gives, by a walk of our own: torch's hands each name up through all modules above it."""
    if not all(_torchs(model, name) for name in ("named_parameters", "_named_members")):
        return _said(model)
    found: dict[str, nn.Parameter] = {}
    met: set[int] = set()
    waiting: list[tuple[str, nn.Module]] = [("", model)]
    while waiting:
        prefix, module = waiting.pop()
        if id(module) in met:
            continue
        if not _torchs(module, "named_modules"):
            return _said(model)
        met.add(id(module))
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter.requires_grad and id(parameter) not in met:
                met.add(id(parameter))
                found[prefix + name] = parameter
        if module._modules:
            children = [(f"{prefix}{name}.", child) for name, child in module._modules.items() if child is not None]
            waiting += children[::-1]
    return found


def _torchs(module: nn.Module, method: str) -> bool:
    """Whether a method of a module is what torch gives it, not one of its own."""
    return getattr(type(module), method) is getattr(nn.Module, method) and method not in module.__dict__


def _said(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def one_per_example(losses: object, n: int) -> Tensor:
    """Refuse losses that are not one number for each of n examples."""
    if isinstance(losses, Tensor) and losses.shape == (n,):
        return losses
    came = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
    raise ModelError(
        f"the loss must be one number per example: {n} examples should give shape ({n},), got {came}; "
        "use reduction='none' and average over every axis but the first"
    )


@dataclass(frozen=True, eq=False)
class LossTask:
    """What every example's gradient is asked of."""

    model: nn.Module
    loss: PerExampleLoss
    parameters: dict[str, nn.Parameter]

    @classmethod
    def of(cls, model: nn.Module, loss: PerExampleLoss) -> LossTask:
        """Put a task together.

        >>> LossTask.of(nn.Linear(2, 1, bias=False), lambda m, x: m(x)[:, 0]).parameters.keys()
        dict_keys(['weight'])
        """
        return cls(model, loss, trainable(model))

    def losses(self, batch: Batch, n: int | None = None) -> Tensor:
        """Run the model forward and give one loss for each of the n examples."""
        return one_per_example(self.loss(self.model, batch), size(batch) if n is None else n)
