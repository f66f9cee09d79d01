"""Scattering for photographs: whitened by synthetic images alone, the same for a mirror image, made once."""

import pytest
import torch

from reticent import data
from reticent.data.features import photographs
from reticent.data.features.leaves import dead_leaves
from reticent.data.features.photographs import Photographs
from reticent.errors import DataError, SettingError
from reticent.experiments.recipe import Recipe, check

SMALL = {"scales": 2, "numbers": 40, "leaves": 120}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RETICENT_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def images():
    return dead_leaves(30, (3, 16, 16), seed=1)


def test_leaves_are_made_by_chance_and_the_same_again():
    some = dead_leaves(40, (3, 16, 16))
    assert some.equal(dead_leaves(40, (3, 16, 16)))
    assert not some.equal(dead_leaves(40, (3, 16, 16), seed=1))
    assert 0 <= some.min() < 0.1 < 0.9 < some.max() <= 1
    assert some.flatten(1).std(1).min() > 0.01, "no image is left empty"


def test_grey_leaves_have_one_colour():
    assert dead_leaves(3, (1, 16, 20)).shape == (3, 1, 16, 20)


def test_neighbouring_pixels_of_leaves_are_alike_as_in_photographs():
    some = dead_leaves(60, (3, 32, 32))
    near, far = ((some[..., step:] - some[..., :-step]).std() for step in (1, 12))
    assert near < 0.6 * far < far


def test_a_mirror_image_has_the_same_features(cache, images):
    transform = Photographs((3, 16, 16), **SMALL)
    torch.testing.assert_close(transform(images.flip(3)), transform(images), rtol=0, atol=1e-4)
    assert (transform(images.flip(2)) - transform(images)).abs().max() > 0.1, "upside down is another image"


def test_one_image_by_itself_has_the_same_features_and_all_the_same_length(cache, images):
    transform = Photographs((3, 16, 16), **SMALL)
    torch.testing.assert_close(transform(images[3:4])[0], transform(images)[3], rtol=0, atol=1e-4)
    torch.testing.assert_close(transform(images).norm(dim=1), torch.full((30,), 8.0))


def test_no_direction_of_new_synthetic_images_drowns_the_others(cache):
    transform = Photographs((3, 16, 16), scales=2, numbers=40, leaves=600)
    white = transform(dead_leaves(300, (3, 16, 16), seed=2)).var(0)
    paths = transform._paths(dead_leaves(300, (3, 16, 16), seed=2)).flatten(1)
    plain = torch.linalg.svdvals(paths - paths.mean(0)).square()
    assert white.max() / white.sum() < 0.1 < 0.5 < plain.max() / plain.sum()


def test_what_is_known_of_leaves_is_made_once(cache, images, monkeypatch):
    before = Photographs((3, 16, 16), **SMALL)(images)
    monkeypatch.setattr(photographs, "dead_leaves", None)  # would fail if it were asked
    assert Photographs((3, 16, 16), **SMALL)(images).equal(before)


def test_images_that_do_not_fit_are_told():
    with pytest.raises(DataError, match="1 or 3 colours"):
        Photographs((2, 32, 32))
    with pytest.raises(DataError, match="16 pixels"):
        data.extract(data.load("digits"), "scattering-photos")


def test_they_are_normalised_already():
    with pytest.raises(SettingError, match="normalised already"):
        check(Recipe(data="cifar10", features="scattering-photos", statistics_noise=8.0).filled())
