"""White-box features: what a model shows of an example to someone who holds its parameters (Nasr et al. 2019)."""

from __future__ import annotations

import copy

import numpy as np
import torch
from scipy.special import log_softmax
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from reticent.attacks.intervals import Floats
from reticent.attacks.signals import confidence, loss
from reticent.gradients import norms


def logits_of(model: nn.Module, x: Tensor, *, batch_size: int = 1024) -> Floats:
    """The model's answers in evaluation mode, float64."""
    model.eval()
    with torch.no_grad():
        return torch.cat([model(part).double().cpu() for part in torch.split(x, batch_size)]).numpy()


def layer_norms(model: nn.Module, x: Tensor, y: Tensor) -> Floats:
    """The norm of every example's gradient in each parameter tensor, examples x tensors.

    >>> layer_norms(nn.Linear(2, 2), torch.zeros(3, 2), torch.zeros(3, dtype=torch.long))[:, 0]
    array([0., 0., 0.])
    """
    own = copy.deepcopy(model).eval()
    trainable = [p for p in own.parameters() if p.requires_grad]
    columns = []
    for chosen in trainable:
        for parameter in trainable:
            parameter.requires_grad_(parameter is chosen)
        columns.append(norms(own, _per_example_loss, (x, y)).double().cpu().numpy())
    return np.stack(columns, axis=1)


def white_box_features(model: nn.Module, x: Tensor, y: Tensor) -> Floats:
    """Confidence, loss, entropy, largest posteriors, label, and gradient norms in all and by layer."""
    logits, labels = logits_of(model, x), y.numpy()
    phi = confidence(logits, labels)
    log_p = log_softmax(logits, axis=1)
    entropy = -(np.exp(log_p) * log_p).sum(axis=1)
    top = -np.sort(-logits, axis=1)[:, :3]
    one_hot = np.eye(logits.shape[1])[labels]
    by_layer = layer_norms(model, x, y)
    total = np.sqrt((by_layer**2).sum(axis=1))
    return np.column_stack([phi, loss(phi), entropy, top, one_hot, total, by_layer])


def _per_example_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    x, y = batch
    return cross_entropy(model(x), y, reduction="none")
