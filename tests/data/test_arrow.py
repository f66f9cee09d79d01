"""Rows of Arrow and Parquet files are read as they are drawn, and are what they would be in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent import data
from reticent.errors import DataError, FileWarning
from reticent.inside import as_store

pa = pytest.importorskip("pyarrow", reason="needs the extra tables")
Pair = tuple[Tensor, Tensor]


def table(pair: Pair, *, lists: bool = False) -> pa.Table:
    x, y = pair[0].numpy(), pair[1].numpy()
    if lists:
        flat = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), x.shape[1])
        return pa.table({"x": flat, "y": y})
    return pa.table({**{f"x{place}": x[:, place] for place in range(x.shape[1])}, "y": y})


def trained(examples: object) -> Tensor:
    torch.manual_seed(0)
    model = rt.fit(nn.Linear(4, 2), examples, noise_multiplier=1.0, epochs=2, batch_size=50, lr=0.5, seed=0).model
    return torch.cat([part.detach().flatten() for part in model.parameters()])


@pytest.mark.parametrize("kind", ["file", "stream", "parquet"])
@pytest.mark.parametrize("lists", [False, True])
def test_files_train_as_arrays_do(
    blobs: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, lists: bool
) -> None:
    monkeypatch.setenv("RETICENT_CACHE", str(tmp_path / "cache"))
    rows, path = table(blobs, lists=lists), tmp_path / ("rows.parquet" if kind == "parquet" else "rows.arrow")
    if kind == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(rows, path, row_group_size=30)
    else:
        new = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
        with new(str(path), rows.schema) as writer:
            writer.write_table(rows, max_chunksize=30)
    found = data.arrow(path, inputs="x" if lists else [f"x{place}" for place in range(4)], label="y")
    assert len(found) == 200
    assert torch.equal(trained(data.ahead(found)), trained(blobs))


def test_a_parquet_file_is_unpacked_once_for_its_owner_alone(
    blobs: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETICENT_CACHE", str(tmp_path / "cache"))
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(table(blobs), tmp_path / "rows.parquet")
    inputs = [f"x{place}" for place in range(4)]
    data.arrow(tmp_path / "rows.parquet", inputs=inputs, label="y")
    [unpacked] = (tmp_path / "cache" / "private" / "unpacked").glob("*.arrow")
    assert {path.stat().st_mode & 0o077 for path in (unpacked.parents[1], *unpacked.parent.iterdir())} == {0}
    written = unpacked.stat().st_mtime_ns
    data.arrow(tmp_path / "rows.parquet", inputs=inputs, label="y")
    assert unpacked.stat().st_mtime_ns == written
    whole = unpacked.read_bytes()
    unpacked.write_bytes(whole[:-900] + bytes([whole[-900] ^ 1]) + whole[-899:])
    with pytest.warns(FileWarning, match="damaged: it is made again"):
        data.arrow(tmp_path / "rows.parquet", inputs=inputs, label="y")
    assert unpacked.read_bytes() == whole
    parquet.write_table(table((blobs[0] + 1, blobs[1])), tmp_path / "rows.parquet")
    again = data.arrow(tmp_path / "rows.parquet", inputs=inputs, label="y")
    assert torch.equal(again.take(np.array([3]))[0], blobs[0][3:4] + 1)


def test_a_row_without_a_label_or_a_number_counts_for_nothing() -> None:
    lists = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2))
    rows = data.arrow(pa.table({"x": lists, "z": [1, 2, 3], "y": pa.array([0, 1, None])}), inputs=["x", "z"], label="y")
    x, y = as_store(rows).take(np.array([0, 1, 2]))
    assert x[0].tolist() == [1.0, 2.0, 1.0]
    assert x[1, :2].isnan().all()
    assert x[2].isnan().all()
    assert y.tolist() == [0, 1, 0]


def test_what_cannot_be_read_says_what_to_do(tmp_path: Path) -> None:
    words = pa.table({"a": ["one"], "ragged": [[1.0]], "y": [0]})
    with pytest.raises(DataError, match="no column 'b'"):
        data.arrow(words, inputs="b", label="y")
    for name in ("a", "ragged"):
        with pytest.raises(DataError, match="fixed_size_list"):
            data.arrow(words, inputs=name, label="y")
    with pytest.raises(DataError, match="whole numbers for classes"):
        data.arrow(words, inputs="y", label="a")
    (tmp_path / "x.arrow").write_bytes(b"something")
    with pytest.raises(DataError, match=r"cannot read .*x\.arrow"):
        data.arrow(tmp_path / "x.arrow", inputs="x", label="y")
    with pa.ipc.new_file(str(tmp_path / "x.arrow"), pa.schema([("xqxq", pa.int64())])) as writer:
        writer.write_table(pa.table({"xqxq": [1]}))
    content = (tmp_path / "x.arrow").read_bytes()
    (tmp_path / "x.arrow").write_bytes(content.replace(b"xqxq", b"\xffqxq"))
    with pytest.raises(DataError, match=r"cannot read .*x\.arrow"):  # a name that is no text
        data.arrow(tmp_path / "x.arrow", inputs="x", label="y")
    with pytest.raises(DataError, match=r"cannot read .*none\.parquet"):
        data.arrow(tmp_path / "none.parquet", inputs="x", label="y")


def test_rows_of_datasets_train_as_arrays_do(blobs: Pair) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the package datasets")
    rows = datasets.Dataset.from_dict({"x": blobs[0].numpy(), "y": blobs[1].numpy()}).with_format("torch")

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return nn.functional.cross_entropy(model(batch["x"]), batch["y"], reduction="none")

    def weights(examples: object) -> Tensor:
        torch.manual_seed(0)
        settings = {"noise_multiplier": 1.0, "epochs": 1, "batch_size": 50, "lr": 0.5, "seed": 0}
        model = rt.fit(nn.Linear(4, 2), examples, loss=loss, **settings).model
        return torch.cat([part.detach().flatten() for part in model.parameters()])

    expected = weights({"x": blobs[0], "y": blobs[1]})
    assert torch.equal(weights(rows), expected)
    assert torch.equal(weights(data.ahead(rows)), expected)
