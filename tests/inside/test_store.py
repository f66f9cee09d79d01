"""Examples are fetched in parts: the parts bound memory, and change no answer."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

import reticent as rt
from reticent.inside import as_store
from reticent.inside.columns import MOST_BYTES, MOST_EXAMPLES


@pytest.mark.parametrize(("width", "expected"), [(1, MOST_EXAMPLES), (1000, MOST_BYTES // 4008), (2**23, 1)])
def test_as_many_rows_at_once_as_fit(width, expected):
    x = np.broadcast_to(np.float32(0), (10, width))
    assert as_store((x, np.arange(10))).at_once == expected


def test_a_dataset_of_unknown_size_is_taken_by_number():
    examples = torch.utils.data.TensorDataset(torch.zeros(10, 3), torch.zeros(10))
    assert as_store(examples).at_once == MOST_EXAMPLES


@pytest.mark.parametrize("bytes_at_once", [1, 200, 2**20])
def test_parts_change_no_answer(monkeypatch, bytes_at_once):
    x, y = torch.randn(300, 4, generator=torch.Generator().manual_seed(0)), torch.arange(300) % 2

    def weights():
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        trained = rt.fit(
            model, (x, y), method="dpsgd", epsilon=2.0, delta=1e-5, epochs=2, batch_size=100, lr=0.5, seed=0
        )
        return torch.cat([parameter.detach().flatten() for parameter in trained.model.parameters()])

    whole = weights()
    monkeypatch.setattr(sys.modules["reticent.inside.columns"], "MOST_BYTES", bytes_at_once)
    torch.testing.assert_close(weights(), whole, rtol=1e-4, atol=1e-5)


class Table(torch.utils.data.Dataset):
    """A dataset that tells of columns, as those of the package `datasets` do."""

    column_names = ("x", "y")
    shape = (10, 2)

    def __len__(self):
        return 10

    def __getitem__(self, number):
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers):
        return [{"x": torch.full((3,), float(number)), "y": number} for number in numbers]


def test_a_dataset_with_columns_is_read_by_row():
    found = as_store(Table()).take(np.array([2, 7]))
    assert found["x"][:, 0].tolist() == [2.0, 7.0]
    assert found["y"].tolist() == [2, 7]
