"""Examples and models in every form: dicts, tuples, lists of records, arrays of other types, outputs with names."""

from __future__ import annotations

from collections import OrderedDict, UserDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas
import polars
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

import reticent as rt
from reticent.errors import DataError, ModelError
from reticent.inside import as_store
from reticent.losses import per_example
from reticent.losses.calling import logits_of

X = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(60) % 2
NAMES = list("abcd")


class Rows(Dataset[Any]):
    """A dataset of dicts."""

    def __len__(self) -> int:
        return 60

    def __getitem__(self, row: int) -> dict[str, Any]:
        return {"x": X[row].double().numpy(), "label": int(Y[row])}


FORMS: dict[str, Callable[[], Any]] = {
    "tensors": lambda: (X, Y),
    "list of columns": lambda: [X, Y],
    "arrays": lambda: (X.numpy(), Y.numpy()),
    "float64, int32": lambda: (X.double().numpy(), Y.int().numpy()),
    "float16": lambda: (X.half().float().half(), Y.to(torch.int8)),
    "labels of bytes": lambda: (X, Y.to(torch.uint8)),
    "labels of 16 bits": lambda: (X.numpy(), Y.numpy().astype(np.uint16)),
    "lists": lambda: (X.tolist(), Y.tolist()),
    "dict": lambda: {"x": X, "y": Y},
    "dict of arrays": lambda: {"labels": Y.numpy(), "input": X.double().numpy()},
    "mapping": lambda: UserDict({"x": X, "label": Y}),
    "pairs": lambda: [(x, y) for x, y in zip(X, Y, strict=True)],
    "pairs of arrays and numbers": lambda: [(x.numpy(), int(y)) for x, y in zip(X, Y, strict=True)],
    "records": lambda: [{"x": x, "target": y} for x, y in zip(X, Y, strict=True)],
    "dataset": lambda: TensorDataset(X, Y),
    "dataset of dicts": Rows,
    "pandas": lambda: (pandas.DataFrame(X.numpy(), columns=NAMES), pandas.Series(Y.numpy())),
    "polars": lambda: (polars.DataFrame(X.numpy(), schema=NAMES), polars.Series(Y.numpy())),
    "dict of frames": lambda: {"x": pandas.DataFrame(X.double().numpy()), "y": pandas.Series(Y.numpy())},
    "a dataset of ours": lambda: rt.data.Examples(X, Y),
    "backwards": lambda: (X.flip(0).numpy()[::-1], Y.flip(0).numpy()[::-1]),
}


def linear() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(4, 2)


def fitted(examples: Any, model: nn.Module | None = None, **settings: Any) -> rt.Trained:
    settings = {"noise_multiplier": 1.0, "epochs": 1, "batch_size": 30, "delta": 1e-5, "seed": 0} | settings
    return rt.fit(linear() if model is None else model, examples, **settings)


@pytest.fixture(scope="module")
def reference() -> rt.Trained:
    return fitted((X, Y))


@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_the_examples_changes_nothing(form: str, reference: rt.Trained) -> None:
    examples = FORMS[form]()
    trained = fitted(examples)
    rough = 1e-3 if form == "float16" else 1e-6
    torch.testing.assert_close(trained.model.weight, reference.model.weight, atol=rough, rtol=rough)
    torch.testing.assert_close(trained.predict(examples), reference.predict(X), atol=rough, rtol=rough)
    assert trained.evaluate(examples)["accuracy"] == reference.evaluate(X, Y)["accuracy"]


@pytest.mark.parametrize("x", [X.tolist(), X.double().numpy(), pandas.DataFrame(X.numpy()), {"x": X}, (X,)])
@pytest.mark.parametrize(
    "y", [Y.tolist(), Y.int().numpy(), pandas.Series(Y.double().numpy()), polars.Series(Y.numpy())]
)
def test_inputs_and_targets_apart(x: Any, y: Any, reference: rt.Trained) -> None:
    torch.testing.assert_close(reference.predict(x), reference.predict(X))
    assert reference.evaluate(x, y) == reference.evaluate(X, Y)


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = linear()

    def forward(self, left: Tensor, right: Tensor, scale: float = 1.0) -> Tensor:
        return self.layer(torch.cat([left, right], 1)) * scale  # type: ignore[no-any-return]


class OneTuple(TwoInputs):
    def forward(self, both: Any) -> Tensor:  # type: ignore[override]
        return super().forward(*both)


LEFT, RIGHT = X[:, :2], X[:, 2:]


@pytest.mark.parametrize(
    ("make", "examples"),
    [
        (TwoInputs, (LEFT, RIGHT, Y)),
        (TwoInputs, ((LEFT, RIGHT), Y)),
        (TwoInputs, {"left": LEFT, "right": RIGHT, "labels": Y}),
        (TwoInputs, {"right": RIGHT, "labels": Y, "left": LEFT}),
        (TwoInputs, ({"left": LEFT, "right": RIGHT}, Y)),
        (TwoInputs, TensorDataset(LEFT, RIGHT, Y)),
        (TwoInputs, [((a, b), y) for a, b, y in zip(LEFT, RIGHT, Y, strict=True)]),
        (OneTuple, ((LEFT, RIGHT), Y)),
        (OneTuple, (LEFT, RIGHT, Y)),
    ],
)
def test_several_inputs(make: Callable[[], nn.Module], examples: Any, reference: rt.Trained) -> None:
    trained = fitted(examples, make(), loss=nn.CrossEntropyLoss())
    torch.testing.assert_close(trained.model.layer.weight, reference.model.weight)
    torch.testing.assert_close(trained.predict(examples), reference.predict(X))


@dataclass
class Output:
    """As transformers answer."""

    logits: Tensor
    loss: Tensor | None = None


class Ordered(OrderedDict[str, Tensor]):
    """As older ones do."""


ANSWERS: dict[str, Callable[[Tensor], Any]] = {
    "dict": lambda logits: {"loss": logits.mean(), "logits": logits, "hidden": logits + 1},
    "dict of one": lambda logits: {"scores": logits, "loss": logits.mean()},
    "output": lambda logits: Output(logits, logits.mean()),
    "ordered": lambda logits: Ordered(logits=logits, hidden=logits + 1),
    "tuple of one": lambda logits: (logits,),
}


class Answering(nn.Module):
    def __init__(self, form: str):
        super().__init__()
        self.layer, self.form = linear(), form

    def forward(self, x: Tensor, labels: Tensor | None = None) -> Any:
        assert labels is None, "the mean over the batch is not asked for"
        return ANSWERS[self.form](self.layer(x))


@pytest.mark.parametrize("form", ANSWERS)
@pytest.mark.parametrize(
    "loss", [None, "cross_entropy", lambda o, t: nn.functional.cross_entropy(o, t, reduction="none")]
)
def test_models_that_answer_with_more_than_logits(form: str, loss: Any, reference: rt.Trained) -> None:
    model = Answering(form)
    trained = fitted({"x": X, "labels": Y}, model, loss=loss)
    torch.testing.assert_close(model.layer.weight, reference.model.weight)
    assert trained.evaluate({"x": X, "labels": Y}) == trained.evaluate(X, Y)


def test_a_loss_of_ones_own_may_ask_for_all_that_the_model_returns(reference: rt.Trained) -> None:
    model = Answering("output")
    fitted((X, Y), model, loss=lambda out, y: nn.functional.cross_entropy(out.logits, y, reduction="none"))
    torch.testing.assert_close(model.layer.weight, reference.model.weight)


def test_two_tensors_without_a_name_are_refused() -> None:
    for answer in ({"a": X, "b": X}, (X, X), object()):
        with pytest.raises(ModelError, match="none is called 'logits'"):
            logits_of(answer)


@pytest.mark.parametrize(
    ("examples", "says"),
    [
        ((X, torch.tensor(1)), "column 1 is a single number"),
        ((X, 1), "column 1 is a single number"),
        ({"x": X, "y": 3}, "column 'y' is a single number"),
        ((X, np.array(["a"] * 60)), "column 1 cannot be read as numbers"),
        ((X, ["a"] * 60), "column 1 cannot be read as numbers"),
        ((pandas.DataFrame({"a": ["x"] * 60}), Y), "column 'a' of the data frame holds no numbers"),
        (({"left": LEFT, "right": ["x"] * 60}, Y), "column 0'right' cannot be read"),
        ([(X, Y)][0] + (Y[:3],), "different lengths"),
        ({}, "no examples"),
        ((), "no examples"),
    ],
)
def test_what_cannot_be_read_is_named(examples: Any, says: str) -> None:
    with pytest.raises(DataError, match=f"(?s){says}"):
        as_store(examples)


def test_double_models_get_doubles() -> None:
    model = linear().double()
    fitted((X, Y), model)
    assert model.weight.dtype == torch.float64


def test_public_rows_are_brought_to_the_same_types() -> None:
    fitted((X.double(), Y.int()), probes=(X[:3].double(), Y[:3].int()))


def test_labels_are_looked_at_on_request_in_every_form() -> None:
    for examples in ((X, Y + 1), {"x": X, "y": Y + 1}, TensorDataset(X, Y + 1)):
        for loss in (None, nn.CrossEntropyLoss()):
            with pytest.raises(DataError, match="from 0 to 1"):
                fitted(examples, loss=loss, check_data=True)
    fitted((X, Y.float()), nn.Linear(4, 1), loss="mse", check_data=True)


def test_one_understanding_for_a_run() -> None:
    """What was understood once is taken as it is."""
    found = per_example("mse", nn.Linear(4, 1), (X, Y))
    assert per_example(found, nn.Linear(4, 1), (X, Y)) is found
