"""A model of hashed words is asked about texts as people write them, in Python and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import reticent as rt
from reticent import data
from reticent.cli import app
from reticent.data.features.extractors import text_features
from reticent.data.texts import as_texts, texts_in
from reticent.errors import DataError
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import train

GOOD, BAD = "a good, good film", "what a bad film"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model of a hundred made-up reviews, trained as `reticent train --data imdb` does."""
    texts = [GOOD, BAD] * 100
    y = torch.tensor([1, 0] * 100)
    rows = data.Examples(torch.zeros(200, 80, dtype=torch.int64), y, texts=as_texts(texts))
    monkeypatch.setattr(data, "load", lambda *_a, **_k: data.Dataset("imdb", rows, rows, 2, "made up"))
    recipe = Recipe(data="imdb", method="dpsgd", epsilon=20.0, delta=1e-3, epochs=5, batch_size=50, seed=0)
    train(recipe.filled(), tmp_path / "run")
    return tmp_path / "run"


def test_texts_are_read_as_those_it_was_trained_on(folder: Path, tmp_path: Path) -> None:
    trained = rt.load(folder)
    assert trained.predict([GOOD, BAD, GOOD]) == ["1", "0", "1"]
    file = tmp_path / "new.txt"
    file.write_text(f"{BAD}\n{GOOD}\n")
    assert trained.predict(file) == ["0", "1"]
    told = CliRunner().invoke(app, ["predict", str(folder), str(file), "--json"])
    assert json.loads(told.stdout) == [{"prediction": "0"}, {"prediction": "1"}]
    assert trained.evaluate([GOOD, BAD, BAD], torch.tensor([1, 0, 0]))["accuracy"] == 1.0
    name = trained.about["network"]["features"]
    assert trained.predict(text_features([GOOD], name)).argmax(1).tolist() == [1]


def test_what_is_no_text_is_refused(folder: Path, tmp_path: Path) -> None:
    trained = rt.load(folder)
    with pytest.raises(DataError, match="reads texts"):
        trained.predict(tmp_path / "table.csv")
    with pytest.raises(DataError, match="a single one too") as refused:
        trained.predict("what the patient said")
    assert "patient" not in str(refused.value)
    with pytest.raises(DataError, match="cannot read"):
        trained.predict(tmp_path / "missing.txt")
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(DataError, match="is empty"):
        texts_in(tmp_path / "empty.txt")
    (tmp_path / "latin.txt").write_bytes(b"secret \xe9 word")
    with pytest.raises(DataError, match="UTF-8") as refused:
        texts_in(tmp_path / "latin.txt")
    assert "secret" not in str(refused.value)
