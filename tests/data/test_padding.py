"""Records of many lengths: padded to a public one they are trained on; as they are, the line to write is said."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import reticent as rt
from reticent.errors import DataError, SettingError

BUDGET: dict[str, Any] = {"epsilon": 8.0, "epochs": 1, "batch_size": 10, "lr": 0.1, "seed": 0}
WALKS = [(torch.ones(2 + row % 4, 3), row % 2) for row in range(40)]
WAVES = [(torch.ones(2 + row % 4), row % 2) for row in range(40)]
WORDS = [([1 + (row + place) % 7 for place in range(2 + row % 4)], row % 2) for row in range(40)]


class Listed(Dataset[Any]):
    def __init__(self, rows: list[Any]):
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> Any:
        return self.rows[place]


class Walks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.walk, self.out = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.walk(x)[0].mean(1))  # type: ignore[no-any-return]


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.out = nn.Embedding(10, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.words(x).mean(1))  # type: ignore[no-any-return]


def collate(rows: list[Any]) -> tuple[Tensor, Tensor]:
    sequences = [torch.as_tensor(row[0]) for row in rows]
    return nn.utils.rnn.pad_sequence(sequences, batch_first=True), torch.tensor([row[1] for row in rows])


@pytest.mark.parametrize("function", [None, collate], ids=["plain", "collate_fn"])
@pytest.mark.parametrize(
    ("model", "rows", "length", "shape"),
    [
        (Walks, WALKS, {"0": (5, 3)}, (5, 3)),
        (lambda: nn.Linear(5, 2), WAVES, {"0": 5}, (5,)),
        (Words, WORDS, 5, (5,)),
        (Words, WORDS, {"0": 3}, (3,)),
    ],
    ids=["vectors", "numbers", "words", "words, cut"],
)
def test_sequences_are_padded_and_trained_on(model: Any, rows: Any, length: Any, shape: Any, function: Any) -> None:
    examples = rt.data.padded(Listed(rows), length, collate_fn=function)
    assert examples.odd() == 0
    assert examples.form[0].shape == (1, *shape)
    trained = rt.fit(model(), examples, check_data=True, loss="cross_entropy", **BUDGET)
    assert trained.predict(examples).shape == (40, 2)


@pytest.mark.parametrize(
    ("model", "rows", "line"),
    [
        (Walks, WALKS, 'rt.data.padded(examples, {"0": (LENGTH, 3)})'),
        (Words, WORDS, "rt.data.padded(examples, LENGTH)"),
    ],
    ids=["vectors", "words"],
)
def test_the_line_to_write_is_said(model: Any, rows: Any, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DataError) as refused:
        rt.fit(model(), Listed(rows), check_data=True, **BUDGET)
    assert "30 of 40 records" in str(refused.value)
    assert line in str(refused.value)
    capsys.readouterr()
    rt.fit(model(), Listed(rows), loss="cross_entropy", **BUDGET)  # by the first record alone, which is public
    assert line in capsys.readouterr().err
    with pytest.raises(SettingError, match=r"rt\.data\.padded\(examples, LENGTH, collate_fn=collate_fn\)"):
        rt.fit(model(), Listed(rows), collate_fn=collate, **BUDGET)
    with pytest.raises(DataError, match=r"rt\.data\.padded\(loader\.dataset, LENGTH, collate_fn=loader\.collate_fn\)"):
        rt.fit(model(), DataLoader(Listed(rows), collate_fn=collate), **BUDGET)


@pytest.mark.parametrize(
    ("rows", "length", "says"),
    [
        (WALKS, 5, '{"0": (5, width)}'),
        (WALKS, {"0": 5}, '{"0": (5, width)}'),
        (WAVES, 5, '{"0": 5}'),
        (WORDS, {"words": 5}, "no field is called"),
        (WALKS, {"0": (0, 3)}, "1 or more"),
        (WALKS, {"0": (5, 3, 1)}, "no example of the dataset can be read"),
    ],
)
def test_a_length_that_would_pad_nothing_is_refused(rows: Any, length: Any, says: str) -> None:
    with pytest.raises((DataError, SettingError)) as refused:
        rt.data.padded(rows, length)
    assert says in str(refused.value)


def test_a_list_of_tensors_holds_one_for_each_example() -> None:
    x, y = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 2
    trained = rt.fit(nn.Linear(3, 2), (x, y), loss="cross_entropy", **BUDGET)
    for given in (list(x), [row.numpy() for row in x], (x,), (x, y), [x, y]):
        torch.testing.assert_close(trained.predict(given), trained.predict(x))
    with pytest.raises(DataError, match="different shapes"):
        trained.predict([x[0], x[1, :2]])
    walks = rt.fit(Walks(), rt.data.padded(WALKS, {"0": (5, 3)}), loss="cross_entropy", **BUDGET)
    new = [walk for walk, _ in WALKS[:4]]
    with pytest.raises(DataError, match=r'predict\(rt\.data\.padded\(x, {"0": \(LENGTH, 3\)}\)\)'):
        walks.predict(new)
    assert walks.predict(rt.data.padded(new, {"0": (5, 3)})).shape == (4, 2)
