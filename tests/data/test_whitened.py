"""Whitened scattering: by synthetic images alone, the same for a mirror image where that is asked for, made once."""

import pytest
import torch

from reticent import data
from reticent.data.features import whitened
from reticent.data.features.leaves import dead_leaves
from reticent.data.features.strokes import strokes
from reticent.data.features.threads import threads_inside
from reticent.data.features.whitened import Whitened, photographs, whitening, writing
from reticent.errors import DataError, SettingError
from reticent.experiments.recipe import Recipe, check

SMALL = {"scales": (2,), "mirror": True, "numbers": 40, "synthetic": 120}


KNOWN = [1.9033, 5.6992, 0.7985, 1.6942, -4.7348, -1.4034]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RETICENT_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def images():
    return dead_leaves(30, (3, 16, 16), seed=1).float()


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
    transform = Whitened((3, 16, 16), **SMALL)
    torch.testing.assert_close(transform(images.flip(3)), transform(images), rtol=0, atol=1e-4)
    assert (transform(images.flip(2)) - transform(images)).abs().max() > 0.1, "upside down is another image"


def test_without_mirrors_an_image_and_its_mirror_image_differ(cache, images):
    transform = Whitened((3, 16, 16), **SMALL | {"mirror": False})
    assert (transform(images.flip(3)) - transform(images)).abs().max() > 0.1


def test_scales_stand_side_by_side_each_in_its_own_units(cache, images):
    both = Whitened((3, 16, 16), **SMALL | {"scales": (2, 1)})
    alone = [Whitened((3, 16, 16), **SMALL | {"scales": (scale,)}) for scale in (2, 1)]
    torch.testing.assert_close(both._usual, torch.cat([one._usual for one in alone]), rtol=1e-5, atol=0)
    torch.testing.assert_close(both._middle, torch.cat([one._middle for one in alone]), rtol=1e-5, atol=1e-5)


def test_photographs_may_face_either_way_and_writing_may_not(monkeypatch):
    asked = []
    monkeypatch.setattr(whitened.Whitened, "__init__", lambda self, shape, **how: asked.append((shape, how)))
    photographs((3, 32, 32))
    writing((1, 28, 28))
    assert asked == [
        ((3, 32, 32), {"scales": (3,), "mirror": True}),
        ((1, 28, 28), {"scales": (2,), "like": "strokes"}),
    ]


def test_strokes_are_made_by_chance_and_the_same_again():
    some = strokes(40, (1, 28, 28))
    assert some.equal(strokes(40, (1, 28, 28)))
    assert not some.equal(strokes(40, (1, 28, 28), seed=1))
    assert (some.min(), some.max()) == (0, 1)
    assert 0.02 < some.mean((1, 2, 3)).min() < some.mean((1, 2, 3)).max() < 0.5, "none is empty or full"


@pytest.mark.parametrize("shape", [(28, 28), (16, 24), (64, 64)])
def test_strokes_stay_in_the_middle_whatever_the_size(shape):
    some = strokes(60, (1, *shape))
    assert some.shape == (60, 1, *shape)
    rows, columns = (torch.arange(side) - (side - 1) / 2 for side in shape)
    ink = some[:, 0] / some.sum((2, 3), keepdim=True)[:, 0]
    for middle, side in ((ink.sum(2) @ rows.double(), shape[0]), (ink.sum(1) @ columns.double(), shape[1])):
        assert middle.mean().abs() < 0.03 * side
        assert middle.abs().max() < 0.25 * side


def test_strokes_have_one_colour():
    with pytest.raises(DataError, match="one colour"):
        Whitened((3, 16, 16), **SMALL | {"like": "strokes"})
    colours = data.Examples(torch.rand(2, 3, 16, 16), torch.zeros(2, dtype=torch.int64))
    with pytest.raises(DataError, match="one colour"):
        data.extract(data.Dataset("colours", colours, None, 2, ""), "scattering-strokes")


def test_what_images_are_like_decides_the_directions(cache):
    images = strokes(30, (1, 16, 16), seed=1).float()
    leaves, pen = (Whitened((1, 16, 16), **SMALL | {"like": like})(images) for like in ("leaves", "strokes"))
    assert (leaves - pen).abs().max() > 0.1


def test_one_image_by_itself_has_the_same_features_and_all_the_same_length(cache, images):
    transform = Whitened((3, 16, 16), **SMALL)
    torch.testing.assert_close(transform(images[3:4])[0], transform(images)[3], rtol=0, atol=1e-4)
    torch.testing.assert_close(transform(images).norm(dim=1), torch.full((30,), 8.0))


def test_no_direction_of_new_synthetic_images_drowns_the_others(cache):
    transform = Whitened((3, 16, 16), scales=(2,), mirror=True, numbers=40, synthetic=600)
    white = transform(dead_leaves(300, (3, 16, 16), seed=2)).var(0)
    paths = transform._paths(dead_leaves(300, (3, 16, 16), seed=2), transform._transforms)[0].flatten(1)
    plain = torch.linalg.svdvals(paths - paths.mean(0)).square()
    assert white.max() / white.sum() < 0.1 < 0.4 < plain.max() / plain.sum()


def test_what_is_known_of_leaves_is_made_once(cache, images, monkeypatch):
    before = Whitened((3, 16, 16), **SMALL)(images)
    monkeypatch.setitem(whitened.SYNTHETIC, "leaves", None)  # would fail if it were asked
    assert Whitened((3, 16, 16), **SMALL)(images).equal(before)


def test_who_learns_of_leaves_again_elsewhere_has_the_same_features(images, tmp_path, monkeypatch):
    """A model is asked in the directions that it was trained in, also where another machine found them."""
    found = []
    for threads in (1, 2):
        monkeypatch.setenv("RETICENT_CACHE", str(tmp_path / str(threads)))
        with threads_inside(threads):
            found.append(Whitened((3, 16, 16), scales=(2,), numbers=100, synthetic=120)(images))
    torch.testing.assert_close(*found, rtol=0, atol=1e-3)


def test_small_changes_of_rows_are_small_changes_of_directions():
    rows = dead_leaves(100, (3, 16, 16)).flatten(1)
    rows = rows - rows.mean(0)
    jolt = 1e-12 * torch.randn(rows.shape, dtype=rows.dtype, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(whitening(rows + jolt, 90), whitening(rows, 90), rtol=0, atol=1e-6)


def test_directions_point_where_their_entries_add_up_and_faint_ones_stay_faint():
    rows = torch.randn(200, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rows = (rows - rows.mean(0)) * torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, 1e-3], dtype=torch.float64)
    for some in (rows, -rows, rows.flip(0)):
        assert whitening(some, 6).sum(0).min() >= 0
    lengths = (rows @ whitening(rows, 6)).std(0)
    assert lengths[:5].min() > 0.9 > 0.1 > lengths[5], "what hardly varies is not blown up to the same length"


def test_a_row_that_is_known(cache):
    """Signs, floors, units and offsets: on every machine the same."""
    y, x = torch.meshgrid(torch.linspace(0, 1, 16), torch.linspace(0, 1, 16), indexing="ij")
    image = torch.stack([x * y, (x - y).abs(), (7 * x).sin().abs()])[None]
    found = Whitened((3, 16, 16), scales=(2, 1), numbers=6, synthetic=60)(image)[0]
    torch.testing.assert_close(found, torch.tensor(KNOWN), rtol=0, atol=2e-3)


def test_whitening_is_learned_in_double_precision(cache, monkeypatch):
    seen = []
    monkeypatch.setattr(
        whitened, "whitening", lambda rows, numbers: (seen.append(rows.dtype), whitening(rows, numbers))[1]
    )
    Whitened((1, 16, 16), **SMALL)
    assert seen == [torch.float64]


def test_no_images_have_no_rows_and_values_are_cut(cache, images):
    transform = Whitened((3, 16, 16), **SMALL)
    assert transform(images[:0]).shape == (0, 40)
    torch.testing.assert_close(transform(images * 1e30), transform((images > 0).float()))


def test_rounding_gets_no_length(cache):
    """Of few coordinates no more directions are taken than there are."""
    transform = Whitened((1, 16, 16), scales=(2,), numbers=3000, synthetic=150)
    assert transform.numbers == 149
    few = (
        torch.randn(50, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) @ torch.eye(3, 20).double()
    )
    found = whitening(few - few.mean(0), 10)
    assert found[:, 3:].abs().max() == 0 < found[:, :3].abs().max(0).values.min()


def test_rows_are_kept_under_what_they_were_made_with(tmp_path, monkeypatch):
    monkeypatch.setenv("RETICENT_CACHE", str(tmp_path))
    before = repr(Whitened((3, 16, 16), **SMALL))
    monkeypatch.setenv("RETICENT_CACHE", str(tmp_path / "elsewhere"))
    monkeypatch.setattr(whitened, "OFFSET", 0.5)
    assert repr(Whitened((3, 16, 16), **SMALL)) != before


def test_images_that_do_not_fit_are_told():
    with pytest.raises(DataError, match="1 or 3 colours"):
        Whitened((2, 32, 32))
    with pytest.raises(DataError, match="16 to 64 pixels"):
        data.extract(data.load("digits"), "scattering-photos")
    with pytest.raises(DataError, match="16 to 64 pixels"):
        Whitened((3, 224, 224))
    with pytest.raises(DataError, match="too much memory"):
        Whitened((3, 64, 64))


@pytest.mark.parametrize("features", ["scattering-photos", "scattering-whitened", "scattering-strokes"])
def test_they_are_normalised_already(features):
    with pytest.raises(SettingError, match="normalised already"):
        check(Recipe(data="cifar10", features=features, statistics_noise=8.0).filled())
