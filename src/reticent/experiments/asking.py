"""Asking: one's own classifier, however it answers, as attacks and canaries ask one: a score for each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reticent.call import classified
from reticent.evaluating import predict
from reticent.experiments.repeat import NO_CLASSES, NotRepeatable
from reticent.gradients.randomness import undisturbed
from reticent.losses.calling import called, logits_of


class Scored(nn.Module):
    """A model that answers with a score for each class, whatever its answer is wrapped in.

    One logit for yes or no is two, of which the first is 0: their cross-entropy is that of the one logit.

    >>> Scored(nn.Identity(), single=True)(torch.tensor([[3.0]])).tolist()
    [[0.0, 3.0]]
    """

    def __init__(self, model: nn.Module, *, single: bool):
        super().__init__()
        self.model, self.single = model, single

    def forward(self, x: Tensor) -> Tensor:
        """As many scores for each example as there are classes."""
        answer = logits_of(called(self.model, x))
        if not self.single:
            return answer
        yes = answer.reshape(-1, 1)
        return torch.cat([torch.zeros_like(yes), yes], 1)


@dataclass(frozen=True)
class Asking:
    """How many classes a model tells apart; `single`: by one logit, with targets of this type; `bare`: by a tensor."""

    classes: int
    single: torch.dtype | None = None
    bare: bool = True

    def of(self, model: nn.Module) -> nn.Module:
        """The model with a score for each class."""
        return model if self.bare and self.single is None else Scored(model, single=self.single is not None)

    def labels(self, targets: Tensor) -> Tensor:
        """The numbers of the classes."""
        return targets if self.single is None else targets.flatten().long()

    def targets(self, labels: Tensor) -> Tensor:
        """The labels as the model's own loss was given them."""
        return labels if self.single is None else labels.to(self.single)


def asking(loss: Mapping[str, object], model: nn.Module, learned: tuple[Tensor, Tensor]) -> Asking:
    """How to ask a model that was trained with such a loss on these pairs; refused if it tells no classes apart.

    >>> asking({"task": "binary", "answers": "logits"}, nn.Linear(2, 1), (torch.zeros(3, 2), torch.ones(3)))
    Asking(classes=2, single=torch.float32, bare=True)
    """
    x, y = learned
    answer, bare = predict(model, x[:1]), isinstance(_first(model, x), Tensor)
    if loss.get("task") == "binary":
        if loss.get("answers") == "logits" and answer.numel() == 1 and y.numel() == len(y):
            return Asking(2, y.dtype, bare)
    elif loss.get("task") in ("classes", None) and classified(answer, y):
        return Asking(answer.shape[1], None, bare)
    raise NotRepeatable(NO_CLASSES)


def _first(model: nn.Module, x: Tensor) -> object:
    """What the model answers for one example, as it comes."""
    with undisturbed(model), torch.no_grad():
        return called(model, x[:1].to(next(model.parameters()).device))
