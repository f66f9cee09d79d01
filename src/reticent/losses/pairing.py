"""Pairing: a loss of outputs and targets as a loss of a model and a batch, one number for each example."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from torch import Tensor, nn

from reticent.errors import ModelError, ReticentError
from reticent.inside import Batch
from reticent.losses.calling import called, logits_of, parted
from reticent.losses.meeting import Kind, met

Compare: TypeAlias = Callable[[Any, Any], Tensor]
"""(output, target) -> one number for each example, or several."""

Answers: TypeAlias = Literal["logits", "probabilities", "logs", "values"]
"""What a model's outputs stand for under a loss."""

Several: TypeAlias = Literal["mean", "sum"]


@dataclass(frozen=True, eq=False)
class Paired:
    """A loss that compares outputs with targets; `several` numbers of one example are averaged, added up, or refused.

    >>> import torch
    >>> loss = Paired("mse", nn.MSELoss(reduction="none"), "regression", "values")
    >>> loss(nn.Identity(), (torch.zeros(2, 3), torch.ones(2, 3)))
    tensor([1., 1.])
    """

    name: str
    compare: Compare
    kind: Kind | None = None
    answers: Answers | None = None
    several: Several | None = "mean"
    whole: bool = False
    """Whether the loss is given all that the model returns, not its logits."""

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        """One number for each example; what does not fit may be one record's doing, and counts for nothing then."""
        inputs, target = parted(batch)
        answer = called(model, inputs)
        try:
            return self.of(answer, target)
        except ReticentError as refusal:  # of a round it would tell: what fails for all alike was tried before
            raise ValueError(str(refusal)) from refusal

    def tried(self, model: nn.Module, batch: Batch) -> Tensor:
        """The same of made-up rows, for which it says what does not fit."""
        inputs, target = parted(batch)
        return self.of(called(model, inputs), target)

    def of(self, answer: Any, target: Any) -> Tensor:
        """One number for each example, from what the model answered."""
        output = answer if self.whole else logits_of(answer)
        if self.kind is not None:
            output, target = met(self.kind, output, target)
        return self._for_each(self.compare(output, target), target)

    def _for_each(self, values: Any, target: Any) -> Tensor:
        if isinstance(values, Tensor) and values.ndim == 0:
            raise ModelError(f"the loss {self.name} {_SCALAR}{_culprit(self.compare)}")
        if not isinstance(values, Tensor) or values.ndim == 1:
            return values  # type: ignore[no-any-return]  # what is no tensor is refused by name, as of any loss
        flat = values.flatten(1)
        if flat.shape[1] == 1:
            return flat[:, 0]
        match self.several:
            case "sum":
                return flat.sum(1)
            case "mean":
                ignored = getattr(self.compare, "ignore_index", None) if self.kind == "classes" else None
                return flat.mean(1) if ignored is None else flat.sum(1) / _counted(target, ignored)
        return values  # refused as well

    def about(self) -> dict[str, str | None]:
        """In plain words, for the folder of a model."""
        return {"name": self.name, "task": self.kind, "answers": self.answers}


def _counted(target: Tensor, ignored: int) -> Tensor:
    """How many targets of each example count, at least one."""
    return (target.flatten(1) != ignored).sum(1).clamp(min=1)


_SCALAR = (
    "gives one number for the whole batch, in which the examples are mixed: let it return one for each, as torch's own "
    "do with reduction='none'; several numbers of an example are averaged by .flatten(1).mean(1)"
)


def _culprit(compare: Compare) -> str:
    """The part of a loss that averages, if it is a module of torch's kind."""
    for path, module in compare.named_modules() if isinstance(compare, nn.Module) else ():
        if path and getattr(module, "reduction", "none") != "none":
            return f". Its part {path!r} is one: {type(module).__name__}(reduction='none')"
    return ""
