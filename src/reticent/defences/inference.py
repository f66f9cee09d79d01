"""The adversary inside AdvReg: a model that tells members from others by prediction and label, and its gain."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, one_hot


class InferenceModel(nn.Module):
    """How likely an example is a member, as a logit, from its prediction vector and its label (h of Nasr et al. 2018).

    Prediction and one-hot label each pass through layers of their own and are then joined, as in the paper.

    >>> h = InferenceModel(classes=3)
    >>> h(torch.full((5, 3), 1 / 3), torch.tensor([0, 1, 2, 0, 1])).shape
    torch.Size([5])
    """

    def __init__(self, classes: int, width: int = 128):
        super().__init__()
        self.classes = classes
        self.prediction = nn.Sequential(nn.Linear(classes, width), nn.ReLU(), nn.Linear(width, width // 2), nn.ReLU())
        self.label = nn.Sequential(nn.Linear(classes, width), nn.ReLU(), nn.Linear(width, width // 2), nn.ReLU())
        self.joined = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, prediction: Tensor, y: Tensor) -> Tensor:
        """The logit of membership for each example."""
        label = one_hot(y, self.classes).to(prediction.dtype)
        logits: Tensor = self.joined(torch.cat([self.prediction(prediction), self.label(label)], dim=1))
        return logits.squeeze(1)


def gain(members: Tensor, others: Tensor) -> Tensor:
    """The adversary's gain from its logits: mean log h of members and log(1 - h) of others, half each.

    It is log(1/2) for an adversary who knows nothing, and 0 for one who is always right (Nasr et al. 2018).

    >>> round(gain(torch.zeros(3), torch.zeros(5)).exp().item(), 6)
    0.5
    """
    return (logsigmoid(members).mean() + logsigmoid(-others).mean()) / 2
