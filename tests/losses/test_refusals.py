"""Losses that mix examples, or that cannot be understood, are refused with the line to change."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import reticent as rt
from reticent.errors import DataError, ModelError, PrivacyWarning, SettingError, UnknownName
from reticent.losses import per_example

X, YES, REAL = torch.randn(60, 4), torch.arange(60) % 2, torch.randn(60)


def run(loss: Any, y: Any = YES, outputs: int = 2, x: Any = X, model: nn.Module | None = None) -> rt.Run:
    model = nn.Linear(4, outputs) if model is None else model
    method = rt.methods.dpsgd(noise_multiplier=1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return rt.Run(model, optimizer, (x, y), method=method, batch_size=20, rounds=1, loss=loss, seed=0)


class Composed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = nn.CrossEntropyLoss()

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return 2 * self.part(output, target)


class Stubborn(nn.Module):
    """It has a reduction and does not listen to it."""

    reduction = "mean"

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(output, target)


class Learned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.ones(()))

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(output / self.temperature, target, reduction="none")


def none(output: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(output, target, reduction="none")


@pytest.mark.parametrize(
    ("loss", "says"),
    [
        (
            lambda output, target: functional.cross_entropy(output, target),
            "one number for the whole batch.*reduction='none'",
        ),
        (Composed(), r"Its part 'part' is one: CrossEntropyLoss\(reduction='none'\)"),
        (Stubborn(), "Stubborn gives one number for the whole batch"),
        (lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]), "reduction='none'"),
        (lambda output, target: none(output, target) / len(target), "mixes examples"),
        (lambda output, target: none(output, target) - none(output, target).mean(), "mixes examples"),
        (lambda output, target: none(output - output.mean(0), target), "mixes examples"),
        (lambda output, target: none(output, target) * target / target.sum().clamp(min=1), "mixes examples"),
        (lambda output, target: none(output, target).sort().values, "mixes examples"),
        (lambda output, target: (output - target[:, None]).square(), r"one number per example.*\(4,\), got \(4, 2\)"),
        (lambda output, target: None, "one number per example.*NoneType"),
        (lambda output, target, more: output, r"neither as loss\(output, target\) nor as loss\(model, batch\)"),
        (Learned(), "a parameter 'temperature' of its own"),
    ],
)
def test_what_mixes_is_refused(loss: Any, says: str) -> None:
    with pytest.raises(ModelError, match=f"(?s){says}"):
        run(loss)


def test_a_weight_for_each_place_of_a_batch_is_refused() -> None:
    """Torch lets BCE have a weight for each row of a batch; here nobody has a place in one."""
    with pytest.raises(ModelError, match="works for 4 rows and not for one more"):
        run(nn.BCEWithLogitsLoss(weight=torch.rand(4, 1)), outputs=1)


@pytest.mark.parametrize(
    ("loss", "y", "outputs", "error", "says"),
    [
        ("cross_entropi", YES, 2, UnknownName, "did you mean 'cross_entropy'"),
        (3, YES, 2, SettingError, "the loss is a int"),
        ("cross_entropy", REAL, 2, DataError, r"give y.long\(\)"),
        ("ordinal", REAL, 2, DataError, r"give y.long\(\)"),
        ("cross_entropy", YES, 1, DataError, "loss='bce' is for classes 0 and 1"),
        ("bce", YES, 2, DataError, r"the model gives \(2,\) and the target is one number"),
        ("mse", torch.zeros(60, 3), 2, DataError, "one output for each target"),
        ("ordinal", torch.zeros(60, 3, dtype=torch.long), 2, DataError, "one output less than there are ranks"),
        (None, YES, 1, SettingError, "loss='bce'.*loss='mse'"),
        (None, torch.zeros(60, 2, dtype=torch.long), 2, SettingError, "loss='bce'"),
        (None, REAL, 2, SettingError, r"y\.long\(\)"),
    ],
)
def test_what_does_not_fit_is_said(loss: Any, y: Tensor, outputs: int, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        run(loss, y, outputs)


def test_a_batch_without_targets_needs_a_loss_of_model_and_batch() -> None:
    model = nn.Linear(4, 2)
    with pytest.raises(DataError, match="nothing to compare"):
        per_example("mse", model, (X,))
    with pytest.raises(DataError, match="a dict of 'a', 'b'"):
        per_example(None, model, {"a": X, "b": X})
    reconstruct = per_example(lambda model, batch: model(batch[0]).square().sum(1), model, (X,))
    assert reconstruct(model, (X,)).shape == (60,)


def test_whole_numbers_where_the_model_wants_floating_ones() -> None:
    bytes_ = torch.zeros(60, 4, dtype=torch.uint8)
    with pytest.raises(DataError, match=r"torch.uint8: for images of bytes give x.float\(\) / 255"):
        run("cross_entropy", x=bytes_)
    with pytest.raises(DataError, match=r"torch.int64.*x.float\(\)"):
        run(None, x=bytes_.int())
    with pytest.raises(DataError, match=r"torch.uint8.*x.float\(\)"):
        run(lambda model, batch: none(model(batch[0]), batch[1]), x=bytes_)


def test_a_model_that_wants_them_gets_bytes_as_they_are() -> None:
    class Scaled(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x / 255)

    list(run("cross_entropy", x=torch.zeros(60, 4, dtype=torch.uint8), model=Scaled(4, 2)))


def test_no_parameters_and_hardly_any_noise() -> None:
    with pytest.raises(ModelError, match="ReLU has no parameter that is trainable"):
        rt.fit(nn.ReLU(), (X, YES), epsilon=1.0)
    with pytest.raises(ModelError, match="no parameter that is trainable"):
        rt.fit(nn.ReLU(), (X, YES), epsilon=1.0, optimizer=lambda p: torch.optim.SGD(p, lr=1.0))
    with pytest.raises(SettingError, match="hides nothing: say 0"):
        rt.fit(nn.Linear(4, 2), (X, YES), epochs=1, noise_multiplier=1e-12)
    with pytest.warns(PrivacyWarning, match="next to nothing"):
        rt.fit(nn.Linear(4, 2), (X, YES), epochs=1, batch_size=20, noise_multiplier=1e-6)


class Moody(nn.Linear):
    """It answers with something else where an example carries a mark."""

    def forward(self, x: Tensor) -> Any:
        output = super().forward(x)
        return (output, output) if bool((x == 1234.5).any()) else output


def test_an_answer_that_does_not_fit_tells_nothing_of_the_example() -> None:
    """It counts for nothing, as any example that cannot be evaluated: an error would say that it is there."""
    x = X.clone()
    x[3] = 1234.5
    for loss in (None, "cross_entropy", lambda o, t: functional.cross_entropy(o, t, reduction="none")):
        sums = []
        for rows in (x, x[torch.arange(60) != 3]):
            torch.manual_seed(0)
            model = Moody(4, 2)
            sgd, y = torch.optim.SGD(model.parameters(), lr=1.0), torch.zeros(len(rows), dtype=torch.long)
            quiet = rt.methods.dpsgd(noise_multiplier=0.0)
            a_run = rt.Run(model, sgd, (rows, y), method=quiet, batch_size=len(rows), rounds=1, loss=loss, seed=0)
            before = model.weight.detach().clone()
            a_run.step()
            sums.append((model.weight.detach() - before) * len(rows))
        torch.testing.assert_close(*sums)


def test_hardly_any_noise_is_priced_as_if_everybody_took_part() -> None:
    from reticent.accounting import Gaussian, Subsampled, epsilon

    def cost(event: Any) -> float:
        return epsilon({event: 3}, 1e-5, accountant="rdp")

    assert cost(Subsampled(0.1, Gaussian(0.009))) == cost(Gaussian(0.009)) > cost(Subsampled(0.1, Gaussian(0.011)))
