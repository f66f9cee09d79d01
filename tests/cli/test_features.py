"""Features side by side on the command line: trained on, and made of new images when they are asked about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import reticent as rt
from reticent.cli import app
from reticent.data.features.whitened import Whitened
from reticent.errors import DataError

NAMES = "scattering|deskew"


def said(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def test_features_side_by_side_from_training_to_new_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RETICENT_CACHE", str(tmp_path / "cache"))
    rng, y = np.random.default_rng(0), np.arange(60) % 2
    x = (rng.random((60, 1, 8, 8)) + y[:, None, None, None] * (np.arange(8) < 4)).astype(np.float32) / 2
    np.savez("own.npz", x=x, y=y, classes=np.array(["no", "yes"]))
    np.savez("new.npz", x=x[:6])
    quick = ("--method", "dpsgd", "--epochs", "4", "--batch-size", "20", "--lr", "0.1", "--epsilon", "8", "--seed", "0")
    said("train", "--data", "own.npz", "--features", NAMES, *quick, "--out", "run")
    answers = said("predict", "run", "new.npz").split()
    assert answers[0] == "prediction"
    trained = rt.load("run")
    rows = trained.inputs("new.npz")
    assert rows.shape == (6, 81 * 2 * 2 + 64)
    torch.testing.assert_close(rows.norm(dim=1), torch.full((6,), 8.0))
    names = ["no", "yes"]
    assert answers[1:] == [names[int(one)] for one in trained.model(rows[:]).argmax(1)]
    np.savez("wide.npz", x=np.zeros((2, 1, 8, 12), np.float32))
    told = CliRunner().invoke(app, ["predict", "run", "wide.npz"])
    assert told.exit_code != 0
    assert "trained on features of inputs of the shape (1, 8, 8), and these have (1, 8, 12)" in str(told.exception)


def test_images_of_another_size_are_refused_though_their_features_are_as_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whitened scattering makes equally many numbers of every size, in directions of that size alone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RETICENT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(Whitened.__init__.__kwdefaults__, "numbers", 30)
    monkeypatch.setitem(Whitened.__init__.__kwdefaults__, "synthetic", 60)
    rng = np.random.default_rng(0)
    np.savez("own.npz", x=rng.random((40, 1, 16, 16), np.float32), y=np.arange(40) % 2, classes=np.array(["no", "yes"]))
    quick = ("--method", "dpsgd", "--epochs", "2", "--batch-size", "20", "--lr", "0.1", "--epsilon", "8", "--seed", "0")
    said("train", "--data", "own.npz", "--features", "scattering-whitened", *quick, "--out", "run")
    trained = rt.load("run")
    for number, shape in enumerate([(1, 20, 20), (3, 16, 16)]):
        np.savez(f"other{number}.npz", x=rng.random((3, *shape), np.float32))
        with pytest.raises(DataError, match="bring them into that shape"):
            trained.inputs(f"other{number}.npz")
    np.savez("same.npz", x=rng.random((3, 1, 16, 16), np.float32))
    assert trained.inputs("same.npz").shape == (3, 30)
