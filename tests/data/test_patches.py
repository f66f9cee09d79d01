"""Random patches: filters from synthetic images alone, the same for a mirror image, each image by itself."""

import pytest
import torch

from reticent import data
from reticent.data.features import patches
from reticent.data.features.leaves import dead_leaves
from reticent.data.features.patches import RandomPatches
from reticent.data.features.threads import threads_inside
from reticent.errors import DataError
from reticent.models.whitening import MOST_WIDE

SMALL = {"filters": 30, "numbers": 40, "synthetic": 120}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RETICENT_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def images():
    return dead_leaves(30, (3, 16, 16), seed=1).float()


def test_rows_have_the_same_length_and_depend_on_one_image_each(cache, images):
    transform = RandomPatches((3, 16, 16), **SMALL)
    rows = transform(images)
    assert rows.shape == (30, 40)
    torch.testing.assert_close(rows.norm(dim=1), torch.full((30,), 8.0))
    torch.testing.assert_close(transform(images[3:4])[0], rows[3], rtol=0, atol=1e-4)
    blank = transform(torch.zeros(2, 3, 16, 16))
    assert torch.isfinite(blank).all()


def test_images_of_another_shape_are_refused_and_no_images_have_no_rows(cache):
    transform = RandomPatches((3, 16, 16), **SMALL)
    for shape in [(2, 3, 20, 20), (2, 3, 16, 20), (2, 1, 16, 16), (3, 16, 16)]:
        with pytest.raises(DataError, match="expected images"):
            transform(torch.rand(shape))
    assert transform(torch.rand(0, 3, 16, 16)).shape == (0, 40)


def test_a_mirror_image_has_the_same_features_where_that_is_asked_for(cache, images):
    alike, apart = (RandomPatches((3, 16, 16), **SMALL, mirror=mirror) for mirror in (True, False))
    torch.testing.assert_close(alike(images.flip(3)), alike(images), rtol=0, atol=1e-3)
    assert (apart(images.flip(3)) - apart(images)).abs().max() > 0.1
    assert (alike(images.flip(2)) - alike(images)).abs().max() > 0.1, "upside down is another image"


def test_brightness_of_a_patch_is_no_feature(cache, images):
    """Patches are centred: what an image has in common with a filter is its shape."""
    transform = RandomPatches((3, 16, 16), **SMALL)
    dim = 0.5 * images
    torch.testing.assert_close(transform(dim + 0.25), transform(dim), rtol=0, atol=2e-2)


def test_a_filter_finds_the_patch_that_it_is(cache):
    """What an image has in common with a filter is most where the image is made of the filter's own patch."""
    transform = RandomPatches((1, 16, 16), **SMALL, mirror=False)
    filters = torch.nn.functional.normalize(transform._filters, dim=0)
    scales = (transform._middle[:, None] + filters) * 10  # patches that are whitened to nearly the filters
    common = (scales.T - transform._middle) @ transform._filters
    assert (common.argmax(1) == torch.arange(30)).float().mean() > 0.9


def test_no_direction_of_new_synthetic_images_drowns_the_others(cache):
    transform = RandomPatches((3, 16, 16), filters=30, numbers=40, synthetic=600)
    white = transform(dead_leaves(300, (3, 16, 16), seed=2)).var(0)
    assert white.max() < 12 * white.median()


def test_what_is_known_is_kept_and_the_same_with_any_threads(cache, images):
    with threads_inside(2):
        first = RandomPatches((3, 16, 16), **SMALL)
    assert len(list((cache / "private" / "features").iterdir())) == 2
    again = RandomPatches((3, 16, 16), **SMALL)
    assert repr(again) == repr(first)
    assert again(images).equal(first(images))
    other = RandomPatches((3, 16, 16), **SMALL | {"filters": 31})
    assert repr(other) != repr(first)


def test_patches_by_name_stand_beside_scattering(cache, monkeypatch, images):
    asked = []

    class Small(RandomPatches):
        def __init__(self, shape):
            asked.append(shape)
            super().__init__(shape, **SMALL)

    monkeypatch.setitem(data.features.extractors.WHITENED, "patches", Small)
    rows = data.Examples(images, torch.zeros(30, dtype=torch.int64))
    found = data.extract(data.Dataset("leaves", rows, None, 2, ""), "scattering-normalised|patches")
    assert asked == [(3, 16, 16)]
    torch.testing.assert_close(found.train.x.norm(dim=1), torch.full((30,), 8.0))
    alone = RandomPatches((3, 16, 16), **SMALL)(images)
    torch.testing.assert_close(found.train.x[:, -40:], alone / 2**0.5, rtol=0, atol=1e-4)


def test_fewer_numbers_are_the_first_of_all(cache, monkeypatch, images):
    """Those that vary most; beside 3,000 of scattering they are no more than second moments are released of."""
    most, all_of_them = (RandomPatches((3, 16, 16), **SMALL | {"numbers": many}) for many in (25, 40))
    first = torch.nn.functional.normalize(all_of_them(images)[:, :25], dim=1)
    torch.testing.assert_close(most(images), 8 * first, rtol=0, atol=1e-4)
    asked = []
    monkeypatch.setattr(patches, "RandomPatches", lambda shape, **said: asked.append((shape, said)))
    data.features.extractors.WHITENED["patches-1000"]((1, 28, 28))
    assert asked == [((1, 28, 28), {"numbers": 1000})]
    assert MOST_WIDE >= 3000 + 1000


@pytest.mark.parametrize("shape", [(2, 32, 32), (3, 8, 32), (3, 32, 65)])
def test_images_that_they_cannot_be_made_of_are_refused(shape):
    with pytest.raises(DataError, match="patches needs images"):
        RandomPatches(shape)
