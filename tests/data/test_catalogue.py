"""Loading by name: what is embedded, what is missing, where it is looked for."""

import pytest
import torch

from reticent import data
from reticent.data.loading.places import cache_folder, data_folder
from reticent.errors import DataError, UnknownName

NAMES = ["digits", "mnist", "fashion-mnist", "cifar10", "cifar100", "imdb"]
NAMES += ["purchase100", "location30", "adult", "adult-clean"]


def test_the_promised_names_are_known():
    assert list(data.names()) == NAMES


def test_digits_are_embedded_and_split_for_good():
    digits = data.load("digits")
    assert digits.train.x.shape == (1437, 1, 8, 8)
    assert digits.test.x.shape == (360, 1, 8, 8)
    assert digits.train.x.dtype == torch.float32
    assert digits.train.y.dtype == torch.int64
    assert float(digits.train.x.min()) == 0
    assert float(digits.train.x.max()) == 1
    assert digits.classes == 10
    assert "80/20 split, seed 0" in digits.note
    # The split is part of the public record: these labels must never change.
    assert digits.train.y[:12].tolist() == [2, 8, 2, 6, 6, 7, 1, 9, 8, 5, 2, 8]
    assert digits.test.y[:12].tolist() != digits.train.y[:12].tolist()


def test_examples_unpack_as_a_pair():
    x, y = data.load("digits").test
    assert len(x) == len(y) == 360


def test_unequal_lengths_are_refused():
    with pytest.raises(DataError, match="one label for each input"):
        data.Examples(torch.zeros(3, 2), torch.zeros(2))


def test_unknown_names_come_with_a_hint():
    with pytest.raises(UnknownName, match="did you mean 'mnist'"):
        data.load("mnst")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "digits"])
def test_a_missing_dataset_says_what_to_run_and_what_was_looked_at(name, tmp_path):
    with pytest.raises(DataError) as caught:
        data.load(name, folder=tmp_path)
    message = str(caught.value)
    assert f"reticent data get {name}" in message
    assert str(tmp_path / name) in message
    assert "looked for" in message


def test_the_short_name_is_the_long_one(tmp_path):
    with pytest.raises(DataError, match="fashion-mnist is not in"):
        data.load("fmnist", folder=tmp_path)


def test_names_resolve_to_what_is_loaded():
    assert data.resolve("fmnist") == "fashion-mnist"
    assert data.resolve("folder/own.toml") == "folder/own.toml"
    with pytest.raises(UnknownName):
        data.resolve("own.json")


@pytest.mark.parametrize(("choose", "variable"), [(data_folder, "RETICENT_DATA"), (cache_folder, "RETICENT_CACHE")])
def test_folders_by_option_then_variable_then_platform(choose, variable, monkeypatch, tmp_path):
    monkeypatch.setenv(variable, str(tmp_path / "set"))
    assert choose(tmp_path / "given") == tmp_path / "given"
    assert choose() == tmp_path / "set"
    monkeypatch.delenv(variable)
    assert choose().name == "reticent"
