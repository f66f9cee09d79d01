"""Our scattering against recorded values of the papers' own transform, and against that transform where installed."""

from pathlib import Path

import numpy as np
import pytest
import torch

from reticent.data import Scattering
from reticent.errors import DataError

GOLDEN = Path(__file__).parent / "golden" / "scattering.npz"  # kymatio 0.3.0, J=2, L=8, order 2


@pytest.mark.parametrize(("kind", "shape"), [("grey", (81, 7, 7)), ("colour", (243, 8, 8))])
def test_agrees_with_recorded_features(kind, shape):
    with np.load(GOLDEN) as golden:
        images, expected = torch.from_numpy(golden[kind]).float() / 255, torch.from_numpy(golden[f"{kind}_features"])
    found = Scattering(tuple(images.shape[2:]))(images)
    assert found.shape[1:] == shape
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("scales", "angles", "shape"),
    [(2, 8, (28, 28)), (1, 8, (28, 28)), (3, 8, (32, 32)), (2, 4, (20, 31)), (3, 6, (48, 40))],
)
def test_agrees_with_kymatio(scales, angles, shape):
    kymatio = pytest.importorskip("kymatio", reason="the oracle kymatio is not installed")
    images = torch.rand(2, 2, *shape, generator=torch.Generator().manual_seed(3))
    expected = kymatio.Scattering2D(scales, shape, L=angles, frontend="torch")(images).flatten(1, 2)
    torch.testing.assert_close(Scattering(shape, scales=scales, angles=angles)(images), expected, rtol=0, atol=1e-5)


def test_one_image_by_itself_has_the_same_features():
    images = torch.rand(5, 1, 28, 28, generator=torch.Generator().manual_seed(4))
    transform = Scattering((28, 28))
    torch.testing.assert_close(transform(images[3:4])[0], transform(images)[3], rtol=0, atol=1e-6)


def test_a_constant_image_has_its_constant_and_no_waves():
    features = Scattering((28, 28))(torch.full((1, 1, 28, 28), 0.7))[0]
    torch.testing.assert_close(features[0], torch.full((7, 7), 0.7), rtol=1e-3, atol=0)
    assert features[1:].abs().max() < 1e-5


def test_order_one_scales_with_the_image():
    image = torch.rand(1, 1, 28, 28, generator=torch.Generator().manual_seed(5))
    transform = Scattering((28, 28))
    torch.testing.assert_close(transform(2 * image), 2 * transform(image), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("images", [torch.zeros(2, 28, 28), torch.zeros(2, 1, 32, 32)])
def test_other_shapes_are_refused(images):
    with pytest.raises(DataError, match="expected images"):
        Scattering((28, 28))(images)


def test_tiny_images_are_refused():
    with pytest.raises(DataError, match="fewer scales"):
        Scattering((4, 4), scales=3)
