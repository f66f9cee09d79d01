"""Every way to write a loss is the same as its per-example form by hand: the values, and a private step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import reticent as rt
from reticent.losses import names, per_example

X = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
CLASS, YES, MANY = torch.arange(60) % 3, torch.arange(60) % 2, (torch.arange(180).reshape(60, 3) % 5) % 2
REAL, TWO = X.sum(1), X[:, :2] * 2
WEIGHT, TIMES = torch.tensor([1.0, 2.0, 0.5]), torch.tensor([1.0, 3.0, 2.0])


def ce(model: nn.Module, batch: Any, **settings: Any) -> Tensor:
    return functional.cross_entropy(model(batch[0]), batch[1], reduction="none", **settings)


def bce(model: nn.Module, batch: Any, **settings: Any) -> Tensor:
    y = batch[1].float().reshape(len(batch[1]), -1)
    return functional.binary_cross_entropy_with_logits(model(batch[0]), y, reduction="none", **settings).mean(1)


def by(function: Callable[..., Tensor], **settings: Any) -> Callable[[nn.Module, Any], Tensor]:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        y = batch[1].reshape(len(batch[1]), -1)
        return function(model(batch[0]), y, reduction="none", **settings).mean(1)

    return loss


def total(model: nn.Module, batch: Any) -> Tensor:
    return (model(batch[0]) - batch[1]).square().sum(1)


def ordinal(model: nn.Module, batch: Any) -> Tensor:
    above = torch.stack([(batch[1] > step).float() for step in range(2)], 1)
    return functional.binary_cross_entropy_with_logits(model(batch[0]), above, reduction="none").sum(1)


def poisson(model: nn.Module, batch: Any) -> Tensor:
    output = model(batch[0])[:, 0]
    return output.exp() - batch[1] * output


class Focal(nn.Module):
    """A loss of one's own, with torch's manners."""

    def __init__(self, power: float, reduction: str = "mean"):
        super().__init__()
        self.power, self.reduction = power, reduction

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        losses = functional.cross_entropy(output, target, reduction="none")
        losses = (1 - (-losses).exp()) ** self.power * losses
        return losses if self.reduction == "none" else losses.mean()


def focal(model: nn.Module, batch: Any) -> Tensor:
    return Focal(2.0, "none")(model(batch[0]), batch[1])


def with_reduction(output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    return functional.cross_entropy(output, target, reduction=reduction)


def own(output: Tensor, target: Tensor) -> Tensor:
    return (output[:, 0] - target).abs()


FORMS: dict[str, tuple[Any, int, Tensor, Callable[[nn.Module, Any], Tensor]]] = {
    "cross_entropy": ("cross_entropy", 3, CLASS, ce),
    "CrossEntropyLoss": (nn.CrossEntropyLoss(), 3, CLASS, ce),
    "CrossEntropyLoss sum": (nn.CrossEntropyLoss(reduction="sum"), 3, CLASS, ce),
    "CrossEntropyLoss weighted": (nn.CrossEntropyLoss(weight=WEIGHT), 3, CLASS, partial(ce, weight=WEIGHT)),
    "CrossEntropyLoss double weights": (
        nn.CrossEntropyLoss(weight=WEIGHT.double()),
        3,
        CLASS,
        partial(ce, weight=WEIGHT),
    ),
    "CrossEntropyLoss smooth": (
        nn.CrossEntropyLoss(weight=WEIGHT, label_smoothing=0.1),
        3,
        CLASS,
        partial(ce, weight=WEIGHT, label_smoothing=0.1),
    ),
    "CrossEntropyLoss ignoring": (nn.CrossEntropyLoss(ignore_index=1), 3, CLASS, partial(ce, ignore_index=1)),
    "F.cross_entropy": (functional.cross_entropy, 3, CLASS, ce),
    "F.cross_entropy partial": (partial(functional.cross_entropy, weight=WEIGHT), 3, CLASS, partial(ce, weight=WEIGHT)),
    "labels (n, 1)": (nn.CrossEntropyLoss(), 3, CLASS[:, None], lambda m, b: ce(m, (b[0], b[1][:, 0]))),
    "probabilities": (nn.CrossEntropyLoss(), 3, functional.one_hot(CLASS, 3).float(), ce),
    "bce": ("bce", 1, YES, bce),
    "bce of bool": ("bce", 1, YES.bool(), bce),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss(), 1, YES.float(), bce),
    "BCEWithLogitsLoss multi-label": (nn.BCEWithLogitsLoss(), 3, MANY, bce),
    "BCEWithLogitsLoss pos_weight": (
        nn.BCEWithLogitsLoss(weight=WEIGHT, pos_weight=TIMES),
        3,
        MANY,
        partial(bce, weight=WEIGHT, pos_weight=TIMES),
    ),
    "F.bce": (functional.binary_cross_entropy_with_logits, 3, MANY.float(), bce),
    "mse": ("mse", 1, REAL, by(functional.mse_loss)),
    "F.mse_loss": (functional.mse_loss, 2, TWO, by(functional.mse_loss)),
    "MSELoss sum": (nn.MSELoss(reduction="sum"), 2, TWO, total),
    "MSELoss none": (nn.MSELoss(reduction="none"), 2, TWO, by(functional.mse_loss)),
    "mse of whole numbers": ("mse", 1, CLASS, by(lambda o, y, **kw: functional.mse_loss(o, y.float(), **kw))),
    "mae": ("mae", 1, REAL, by(functional.l1_loss)),
    "huber": ("huber", 1, REAL, by(functional.huber_loss)),
    "HuberLoss": (nn.HuberLoss(delta=0.3), 1, REAL[:, None], by(functional.huber_loss, delta=0.3)),
    "SmoothL1Loss": (nn.SmoothL1Loss(beta=0.5), 1, REAL, by(functional.smooth_l1_loss, beta=0.5)),
    "poisson": ("poisson", 1, CLASS, poisson),
    "ordinal": ("ordinal", 2, CLASS, ordinal),
    "module of one's own": (Focal(2.0), 3, CLASS, focal),
    "function with a reduction": (with_reduction, 3, CLASS, ce),
    "output and target": (own, 1, REAL, lambda m, b: own(m(b[0]), b[1])),
    "output and target, (n, 1)": (
        lambda o, t: (o - t[:, None]).abs(),
        1,
        REAL,
        lambda m, b: (m(b[0])[:, 0] - b[1]).abs(),
    ),
    "KLDivLoss": (
        lambda o, t: functional.kl_div(o.log_softmax(1), t, reduction="none").sum(1),
        3,
        functional.one_hot(CLASS, 3).float(),
        lambda m, b: -(m(b[0]).log_softmax(1) * b[1]).sum(1),
    ),
    "model and batch": (ce, 3, CLASS, ce),
    "model and batch, unnamed": (lambda a, b: functional.cross_entropy(a(b[0]), b[1], reduction="none"), 3, CLASS, ce),
}


def linear(outputs: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(4, outputs)


def a_step(loss: Any, outputs: int, y: Tensor) -> Tensor:
    model = linear(outputs)
    run = rt.Run(
        model,
        torch.optim.SGD(model.parameters(), lr=0.5),
        (X, y),
        method=rt.methods.dpsgd(noise_multiplier=1.0),
        batch_size=20,
        rounds=1,
        loss=loss,
        delta=1e-5,
        seed=0,
    )
    list(run)
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_the_one_by_hand(form: str) -> None:
    loss, outputs, y, by_hand = FORMS[form]
    model = linear(outputs)
    understood = per_example(loss, model, (torch.rand(4, 4), torch.ones_like(y[:4])))
    torch.testing.assert_close(understood(model, (X, y)), by_hand(model, (X, y)))
    torch.testing.assert_close(a_step(loss, outputs, y), a_step(by_hand, outputs, y))


def test_weights_are_not_divided_by_their_sum_in_the_batch() -> None:
    """Torch's own mean divides by the weights of the labels that happen to be there: examples would be mixed."""
    model = linear(3)
    losses = per_example(nn.CrossEntropyLoss(weight=WEIGHT), model, (X[:4], CLASS[:4]))(model, (X, CLASS))
    plain = functional.cross_entropy(model(X), CLASS, reduction="none")
    torch.testing.assert_close(losses, WEIGHT[CLASS] * plain)


def test_probabilities_are_compared_where_the_model_gives_them() -> None:
    model = nn.Sequential(linear(1), nn.Sigmoid())
    losses = per_example(nn.BCELoss(), model, (X[:4], YES[:4]))(model, (X, YES))
    torch.testing.assert_close(losses, bce(model[0], (X, YES)))


def test_a_name_for_each_of_torchs_own() -> None:
    """Every name is understood with outputs of its kind."""
    kinds = {"ordinal": (3, CLASS), "poisson": (1, CLASS), "bce": (1, YES), "bce_of_probabilities": (1, YES)}
    assert {"cross_entropy", "bce", "mse", "mae", "huber", "ordinal", "poisson"} <= set(names())
    for name in names():
        outputs, y = kinds.get(name, (3, CLASS) if name in ("cross_entropy", "nll", "multi_margin") else (3, MANY))
        model = nn.Sequential(linear(outputs), nn.Sigmoid())
        assert per_example(name, model, (X[:4], y[:4]))(model, (X, y)).shape == (60,)


class Tagger(nn.Module):
    """A class for each of five words."""

    def __init__(self, last: bool):
        super().__init__()
        self.words, self.layer, self.last = nn.Embedding(10, 4), nn.Linear(4, 3), last

    def forward(self, ids: Tensor) -> Tensor:
        found: Tensor = self.layer(self.words(ids))
        return found if self.last else found.movedim(-1, 1)


@pytest.mark.parametrize("last", [True, False])
def test_words_that_do_not_count_are_left_out_for_each_example_by_itself(last: bool) -> None:
    model, ids, y = Tagger(last), torch.arange(30).reshape(6, 5) % 10, torch.arange(30).reshape(6, 5) % 3
    y[0, 1:], y[1] = -100, -100
    losses = per_example(nn.CrossEntropyLoss(), model, (ids[:2] * 0, y[2:4] * 0))(model, (ids, y))
    logits = model(ids) if last else model(ids).movedim(1, -1)
    for row in range(6):
        counts = y[row] != -100
        alone = functional.cross_entropy(logits[row][counts], y[row][counts]) if counts.any() else torch.tensor(0.0)
        torch.testing.assert_close(losses[row], alone)
