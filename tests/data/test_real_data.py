"""The real datasets, where they are: shapes, counts a class, means and standard deviations as published."""

import gzip
import hashlib

import numpy as np
import pytest
import torch

from reticent import data
from reticent.data.sets import imdb

pytestmark = pytest.mark.data


def counts(y):
    return torch.bincount(y).tolist()


def moments(x):
    """Mean and deviation of each channel."""
    variance, mean = torch.var_mean(x, dim=(0, 2, 3), correction=0)
    return mean.tolist(), variance.sqrt().tolist()


@pytest.mark.parametrize(("name", "mean", "std"), [("mnist", 0.1307, 0.3081), ("fashion-mnist", 0.2860, 0.3530)])
def test_grey_images(name, mean, std, large):
    found = data.load(name, folder=large(name))
    assert found.train.x.shape == (60_000, 1, 28, 28)
    assert found.test.x.shape == (10_000, 1, 28, 28)
    assert found.train.x.dtype == torch.float32
    (found_mean,), (found_std,) = moments(found.train.x)
    assert found_mean == pytest.approx(mean, abs=5e-5)
    assert found_std == pytest.approx(std, abs=5e-5)
    if name == "mnist":
        assert counts(found.train.y) == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
        assert counts(found.test.y) == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    else:
        assert counts(found.train.y) == [6000] * 10
        assert counts(found.test.y) == [1000] * 10


def test_cifar10(large):
    found = data.load("cifar10", folder=large("cifar10"))
    assert found.train.x.shape == (50_000, 3, 32, 32)
    assert counts(found.train.y) == [5000] * 10
    assert counts(found.test.y) == [1000] * 10
    mean, std = moments(found.train.x)
    assert mean == pytest.approx([0.49139968, 0.48215841, 0.44653091], abs=2e-6)
    assert std == pytest.approx([0.24703223, 0.24348513, 0.26158784], abs=2e-6)
    pixels = np.rint(found.test.x.numpy() * 255).astype(np.uint8).reshape(10_000, -1)
    official = np.concatenate([found.test.y.numpy().astype(np.uint8)[:, None], pixels], axis=1)
    expected = "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"
    assert hashlib.sha256(official.tobytes()).hexdigest() == expected  # of the official test_batch.bin


def test_imdb(large):
    folder = large("imdb")
    found = data.load("imdb", folder=folder)
    assert found.train.x.shape == found.test.x.shape == (25_000, 80)
    assert found.train.x.dtype == torch.int64
    assert counts(found.train.y) == counts(found.test.y) == [12_500, 12_500]
    assert int(found.train.x.max()) < 20_000
    assert (found.train.x[:, 0] == 1).all()
    arrays = imdb.IMDB.arrays(folder)
    assert arrays["train_length"].astype(float).mean() == pytest.approx(238.71, abs=0.01)
    assert arrays["test_length"].astype(float).mean() == pytest.approx(230.80, abs=0.01)
    words = data.imdb_words(folder)
    assert words[4:9] == ["the", "and", "a", "of", "to"]


def test_the_review_that_keras_returns_first(large):
    folder = large("imdb")
    start = [1, 14, 22, 16, 43, 530, 973, 1622, 1385, 65, 458, 4468, 66, 3941, 4, 173]
    found = data.load("imdb", folder=folder)
    rows = (found.train.x[:, : len(start)] == torch.tensor(start)).all(1)
    assert found.train.y[rows].tolist() == [1]


@pytest.mark.parametrize(("size", "known"), [(50, 19_128), (100, 18_781)])
def test_glove(size, known, large):
    folder = large("glove")
    large("imdb")
    vectors, found = data.glove(size, folder=folder)
    assert vectors.shape == (20_000, size)
    assert int(found.sum()) == known
    words = data.imdb_words(folder)
    the, terrible, awful, boat = (vectors[words.index(word)] for word in ("the", "terrible", "awful", "boat"))
    first = {50: [0.418, 0.24968, -0.41242], 100: [-0.038194, -0.24487, 0.72812]}[size]
    assert the[:3].tolist() == pytest.approx(first, rel=1e-3)
    similar = torch.nn.functional.cosine_similarity
    assert similar(terrible, awful, 0) > 0.7 > similar(terrible, boat, 0)


def test_location30(large):
    found = data.load("location30", folder=large("location30"))
    assert (len(found.train), len(found.test), found.inputs) == (4008, 1002, (446,))
    x, y = torch.cat([found.train.x, found.test.x]), torch.cat([found.train.y, found.test.y])
    assert float(x.mean()) == pytest.approx(0.120, abs=5e-4)
    assert (min(counts(y)), max(counts(y)), len(counts(y))) == (97, 308, 30)
    assert len(torch.unique(x, dim=0)) == 5010


def test_adult(large):
    folder = large("adult")
    found = data.load("adult", folder=folder)
    assert (len(found.train), len(found.test), found.inputs) == (32_561, 16_281, (108,))
    assert counts(found.train.y) == [24_720, 7_841]
    assert counts(found.test.y) == [12_435, 3_846]
    unknown = {"workclass": 1, "occupation": 35, "native-country": 66}  # where "?" stands among the 108 columns
    assert int(found.train.x[:, list(unknown.values())].any(1).sum()) == 2_399
    assert int(found.test.x[:, list(unknown.values())].any(1).sum()) == 1_221
    if (folder / "adult" / "adult.data.gz").exists():
        raw = gzip.decompress((folder / "adult" / "adult.data.gz").read_bytes())
        expected = "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"
        assert hashlib.sha256(raw).hexdigest() == expected
