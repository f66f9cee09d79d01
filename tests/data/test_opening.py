"""The user's own files by their path: no schema, no training; declared or accepted, the guarantee says which."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import reticent as rt
from reticent import data
from reticent.errors import DataError, UnknownName
from reticent.inside import as_store
from reticent.inside.missing import warn_of_missing

CSV = "age,ward,ill\n" + "".join(
    f"{20 + row},{'north' if row % 3 else 'south'},{'yes' if row % 2 else 'no'}\n" for row in range(60)
)


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(CSV)
    return tmp_path


@pytest.mark.usefixtures("people")
def test_a_table_without_a_schema_says_what_one_would_tell() -> None:
    with pytest.raises(
        DataError, match=r"categories of 1 column, the classes of 'ill'\.\n.*--schema.*--accept-schema"
    ) as told:
        data.load("people.csv")
    assert len(str(told.value).splitlines()) == 2
    accepted = data.load("people.csv", declared=data.Declaration(accept=True))
    assert (accepted.classes, accepted.inputs, len(accepted.train)) == (2, (4,), 60)
    assert "accepted as they were read from the examples" in accepted.train.assumes[0]


@pytest.mark.usefixtures("people")
def test_a_declared_table_and_its_test_file() -> None:
    Path("schema.toml").write_text(data.to_toml(data.propose("people.csv")))
    found = data.load("people.csv", declared=data.Declaration(schema="schema.toml", test="people.csv"))
    assert found.test is not None
    assert len(found.test) == 60
    assert "declared" in found.train.assumes[0]
    assert found.train.take([1]).assumes == found.train.assumes


def test_names_are_not_paths() -> None:
    with pytest.raises(UnknownName):
        data.resolve("nowhere")
    with pytest.raises(UnknownName):
        data.resolve("")


def test_arrays_in_one_file(tmp_path: Path) -> None:
    x, y = np.full((20, 3), 255, np.uint8), np.arange(20) % 2
    path = str(tmp_path / "own.npz")
    np.savez(path, train_x=x, train_y=y, test_x=x, test_y=y, classes=np.array(["cat", "dog"]))
    found = data.load(path)
    assert found.test is not None
    assert (found.classes, float(found.train.x.min()), len(found.test)) == (2, 1.0, 20)
    np.savez(path, x=x.astype(np.float64), y=y)
    with pytest.raises(DataError, match="the classes of 'y'"):
        data.load(path)
    assert data.load(path, declared=data.Declaration(accept=True)).train.x.dtype == torch.float32
    np.savez(path, x=np.array([["a"]]), y=np.array([0]), classes=np.array(["cat", "dog"]))
    with pytest.raises(DataError, match="are no numbers"):
        data.load(path)
    np.savez(path, x=np.array([{}], object), y=np.array([0]))
    with pytest.raises(DataError, match="save plain arrays, no objects"):
        data.load(path)
    np.savez(path, z=x)
    with pytest.raises(DataError, match="must hold labels y"):
        data.load(path)


def test_images_need_no_list_of_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pillow = pytest.importorskip("PIL.Image", reason="image folders need Pillow")
    monkeypatch.chdir(tmp_path)
    for part in ("train", "test"):
        for name, shade in (("dark", 0), ("light", 255)):
            Path("photos", part, name).mkdir(parents=True)
            pillow.new("L", (6, 8), shade).save(Path("photos", part, name, "0.png"))
    with pytest.raises(DataError, match="--accept-schema"):
        data.load("photos")
    found = data.load("photos", declared=data.Declaration(accept=True))
    assert found.test is not None
    assert (found.inputs, found.classes, found.test.y.tolist()) == ((1, 8, 6), 2, [0, 1])
    read = found.train.preprocessing
    assert read is not None
    assert (read.classes, read.apply("photos/test/light").mean()) == (("dark", "light"), 1.0)
    Path("own.toml").write_text('train = "photos/train"\nsize = [8, 8]\nchannels = 1\n')
    assert data.load("own.toml").train.preprocessing.classes == ("dark", "light")  # type: ignore[union-attr]


# --- frames and arrays for rt.fit ----------------------------------------------------------------------------------


def test_frames_of_numbers_train_like_arrays() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    x, y = np.random.RandomState(0).rand(100, 3), np.arange(100) % 2
    columns = {name: x[:, place] for place, name in enumerate("abc")}

    def fitted(examples: object) -> torch.Tensor:
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        trained = rt.fit(model, examples, noise_multiplier=1.0, epochs=1, seed=0)
        frame = pd.DataFrame(columns)
        assert torch.equal(trained.predict(x), torch.as_tensor(trained.predict(frame)))
        return model.weight.detach()

    expected = fitted((torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y)))
    for frame, labels in (
        (pd.DataFrame(columns), pd.Series(y)),
        (pd.DataFrame(columns).astype(object), y),
        (pl.DataFrame(columns), pl.Series(y)),
        (x, y),
    ):
        assert torch.equal(fitted((frame, labels)), expected)


def test_frames_that_are_no_numbers_say_what_to_do() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0], "ward": ["north", "south"]})
    with pytest.raises(DataError, match=r"column 'ward' of the data frame holds no numbers: .*data\.table"):
        as_store((frame, [0, 1]))
    with pytest.raises(DataError, match="does not say which column is the label"):
        as_store(frame)
    with pytest.raises(DataError, match=r"cannot be read as numbers \(object\)"):
        as_store((np.array([["a"]], object), [0]))


def test_columns_of_missing_numbers_are_told_before_training() -> None:
    x, y = torch.rand(100, 3), torch.zeros(100, dtype=torch.long)
    x[:9, 1] = torch.nan  # so few that single records might show
    warn_of_missing(as_store((x, y)))
    x[:30, 1] = torch.nan
    with pytest.warns(UserWarning, match=r"input columns 1 have missing numbers.*keep it to yourself"):
        rt.fit(nn.Linear(3, 2), (x, y), noise_multiplier=1.0, epochs=1, seed=0)
    with pytest.warns(UserWarning, match="input columns 1"):
        warn_of_missing(as_store(data.Examples(x, y)))
