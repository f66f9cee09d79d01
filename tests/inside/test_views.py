"""Views: their mean is one example's gradient, made of this example alone, and costs what the example costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent.errors import DataError, ResumeError, SettingError
from reticent.experiments.recipe import Recipe, check
from reticent.gradients.general import by_loop
from reticent.gradients.grouped import GroupedLoss
from reticent.gradients.task import LossTask
from reticent.inside import Clip, Everyone, Flat, GradientSum, RoundSettings, Task, as_store
from reticent.inside.drawn import Drawn
from reticent.inside.views import Views

Pair = tuple[Tensor, Tensor]
SETTINGS = RoundSettings(size=12, batch_size=12, max_grad_norm=0.2, noise_multiplier=1.0)


@pytest.fixture
def images() -> Pair:
    torch.manual_seed(0)
    return torch.randn(60, 1, 6, 6), torch.arange(60) % 3


def net() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(48, 3))


def loss(model: nn.Module, batch: Any) -> Tensor:
    return nn.functional.cross_entropy(model(batch[0]), batch[1], reduction="none")


def make(images: Pair, views: Any, **settings: Any) -> rt.Run:
    model = net()
    plan = {"method": rt.methods.dpsgd(noise_multiplier=2.0), "batch_size": 12, "rounds": 6, "delta": 1e-5, "seed": 0}
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    return rt.Run(model, sgd, images, views=views, **(plan | settings))


def asked(images: Pair, views: Views, index: np.ndarray) -> Tensor:
    """The bounded sum for the examples of these numbers."""
    model = net()
    query = GradientSum(Task(model, GroupedLoss(loss), Flat(model)), Clip(), SETTINGS)
    draw = replace(Everyone().draw(SETTINGS, 60, np.random.default_rng(0), {}), _index=index)
    rng = np.random.default_rng(0)
    return query.answer(Drawn(draw, rng, {}, as_store(images), _views=views, _secret=5))


@pytest.mark.parametrize("said", ["mirror", "shift=2+count=3", "mirror+shift=1+count=5"])
def test_the_mean_over_the_views_is_bounded_as_one_gradient(said: str, images: Pair) -> None:
    views, index, model = Views.of(said), np.arange(12), net()
    assert views is not None
    first = (images[0][:12], images[1][:12])
    seen = views.seen(first, index, secret=5)
    expected = torch.zeros(sum(p.numel() for p in model.parameters()))
    for one in range(12):
        rows = (seen.rows[0][one], seen.rows[1][one])
        written = by_loop(LossTask.of(model, loss), rows)
        mean = torch.cat([gradient.mean(0).reshape(-1) for gradient in written.values()])
        expected += mean * min(1.0, SETTINGS.max_grad_norm / float(mean.norm()))
    torch.testing.assert_close(asked(images, views, index), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("said", ["mirror", "mirror+shift=2+count=4"])
def test_one_example_moves_the_sum_by_no_more_than_the_clip_norm(said: str, images: Pair) -> None:
    views = Views.of(said)
    assert views is not None
    whole = asked(images, views, np.arange(12))
    moves = [float((whole - asked(images, views, np.delete(np.arange(12), one))).norm()) for one in range(12)]
    assert max(moves) <= SETTINGS.max_grad_norm * (1 + 1e-4)
    assert max(moves) > 0.9 * SETTINGS.max_grad_norm


def test_views_are_mirrored_and_shifted_images(images: Pair) -> None:
    x, y = images
    seen = Views(mirror=True).seen(images, np.arange(60), secret=0)
    assert torch.equal(seen.rows[0][:, 0], x)
    assert torch.equal(seen.rows[0][:, 1], x.flip(-1))
    assert torch.equal(seen.rows[1], y[:, None].expand(-1, 2))
    many = Views(mirror=False, shift=1, count=40).seen(images, np.arange(60), secret=1).rows[0]
    inner = {tuple(view[0, 1:5, 1:5].flatten().tolist()) for view in many[0]}
    padded = torch.nn.functional.pad(x[0][None], (1, 1, 1, 1), mode="replicate")[0, 0]
    possible = {tuple(padded[r + 1 : r + 5, c + 1 : c + 5].flatten().tolist()) for r in range(3) for c in range(3)}
    assert inner == possible, "every shift comes up, and nothing else"


def test_what_is_seen_of_an_example_follows_from_it_alone(images: Pair) -> None:
    """Its coins are those of its number: the same whoever else is drawn, and others for another secret."""
    views = Views(mirror=True, shift=2, count=6)
    whole = views.seen(images, np.arange(60), secret=3).rows[0]
    some = np.array([4, 30, 59])
    few = views.seen((images[0][some], images[1][some]), some, secret=3).rows[0]
    assert torch.equal(few, whole[some])
    assert not torch.equal(views.seen(images, np.arange(60), secret=4).rows[0], whole)
    turned = torch.cat([views._coins(np.arange(3000), view, 7)[0] for view in range(1, 6)])
    assert 0.45 < float(turned.double().mean()) < 0.55


def test_the_price_is_that_of_the_examples(images: Pair) -> None:
    runs = [make(images, views) for views in (None, "mirror+shift=1+count=8")]
    for run in runs:
        list(run)
    assert runs[0].ledger.tally() == runs[1].ledger.tally() == runs[1].plan.tally()
    assert runs[0].guarantee().epsilon == runs[1].guarantee().epsilon
    assert runs[1].guarantee().unit == "example"


def test_resuming_sees_the_same_views_and_refuses_others(images: Pair, tmp_path: Path) -> None:
    said = "mirror+shift=2+count=3"
    whole = make(images, said)
    list(whole)
    half = make(images, said, folder=tmp_path)
    for _ in range(3):
        half.step()
    half.save()
    half.step()
    again = make(images, said, folder=tmp_path, resume=True)
    list(again)
    for one, other in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(one, other)
    other = tmp_path / "other"
    stopped = make(images, said, folder=other)
    stopped.step()
    stopped.save()
    stopped._folder.release()  # type: ignore[union-attr]
    with pytest.raises(ResumeError, match="views"):
        make(images, "mirror", folder=other, resume=True)


def test_persons_have_views_of_all_their_rows(images: Pair) -> None:
    run = make(images, "mirror", groups=np.arange(60) // 3, batch_size=5)
    list(run)
    assert run.guarantee().unit == "person"


def test_fit_and_recipes_take_views(images: Pair) -> None:
    trained = rt.fit(net(), images, views="mirror", epsilon=3.0, epochs=1, batch_size=12, seed=0)
    assert trained.guarantee.epsilon <= 3.0
    assert Recipe(data="mnist", views="mirror").filled().views == "mirror"
    with pytest.raises(SettingError, match="features were taken"):
        check(Recipe(data="mnist", views="mirror", features="scattering").filled())


@pytest.mark.parametrize(
    "said", ["mirror=2", "rotate", "shift", "count=3", "mirror+count=3", "shift=x", "shift=1+shift=2"]
)
def test_views_that_cannot_be_are_refused(said: str) -> None:
    with pytest.raises(SettingError):
        Views.of(said)


def test_examples_without_height_and_width_are_refused(blobs: Pair) -> None:
    with pytest.raises(DataError, match="made of images"):
        rt.Run(
            nn.Linear(4, 2), torch.optim.SGD(nn.Linear(4, 2).parameters(), lr=0.1), blobs, views="mirror",
            method=rt.methods.dpsgd(noise_multiplier=1.0), batch_size=10, rounds=1,
        )  # fmt: skip


def test_views_are_said_in_words() -> None:
    with pytest.raises(SettingError, match="views are said in words"):
        Views.of(4)  # type: ignore[arg-type]
