"""Class means: what is released, which layer is made of it, and what is refused."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.lr_scheduler import LambdaLR

import reticent as rt
from reticent.accounting import Gaussian
from reticent.errors import ModelError, SettingError
from reticent.inside import ClassSums, Clip, Flat, RoundSettings, Task
from reticent.inside.careful import carefully
from reticent.inside.drawn import Drawn
from reticent.inside.draws import Draw, Everyone
from reticent.inside.guard import Guard
from reticent.inside.labelled_rows import classes_of, each_alone, parts_of
from reticent.inside.store import as_store
from reticent.outside import NearestMean
from reticent.outside.class_means import shrunk, shrunk_together

Pair = tuple[Tensor, Tensor]


def fitted(examples: Pair, **said: Any) -> rt.Trained:
    model = said.pop("model", None) or nn.Linear(examples[0].shape[1], 2)
    settings = {"epsilon": 4.0, "delta": 1e-5, "seed": 0, "loss": "cross_entropy"}
    return rt.fit(model, examples, method="class_means", **settings | said)


def answer(pair: Pair, outputs: int = 2, clip: float = 1.0) -> Tensor:
    """What is released of everybody, without noise."""
    model = nn.Linear(pair[0].shape[1], outputs)
    task = Task(model, lambda model, batch: model(batch[0])[:, 0], Flat(model))
    now = RoundSettings(len(pair[0]), len(pair[0]), clip, 1.0)
    draw = Draw(np.arange(len(pair[0])), Everyone(), now)
    return ClassSums(0.6)(task, Clip(), now).answer(Drawn(draw, np.random.default_rng(0), {}, as_store(pair)))


def test_every_class_has_a_line_of_its_sum_and_its_count() -> None:
    x, y = torch.tensor([[2.0, 0.0], [0.0, 1.0], [6.0, 8.0]]), torch.tensor([0, 2, 2])
    found = answer((x, y), outputs=3, clip=2.0)
    assert torch.allclose(found, torch.tensor([[0.8, 0, 0.6], [0, 0, 0], [0.48, 0.4 + 0.64, 1.2]]).double())


def test_without_noise_the_mean_nearest_in_angle_is_named() -> None:
    rng = torch.Generator().manual_seed(1)
    middles = functional.normalize(torch.randn(3, 5, generator=rng), dim=1)
    y = torch.arange(90) % 3
    x = functional.normalize(middles[y] + 0.2 * torch.randn(90, 5, generator=rng), dim=1)
    here = torch.full((18,), 0.3)
    now = RoundSettings(90, 90, 1.0, 0.0)
    step, known = NearestMean(ClassSums(0.6)).follow(answer((x, y), outputs=3), now, here, {})
    weights, biases = (here - step)[:15].reshape(3, 5), (here - step)[15:]
    means = torch.stack([x[y == one].mean(0) for one in range(3)])
    assert torch.allclose(weights, 60 * functional.normalize(means, dim=1), atol=1e-4)
    assert torch.equal(biases, torch.zeros(3))
    angles = functional.cosine_similarity(x[:, None], means[None], dim=2)
    assert torch.equal((9 * x @ weights.T + biases).argmax(1), angles.argmax(1))  # however long a row is
    again, more = NearestMean(ClassSums(0.6)).follow(answer((x, y), outputs=3), now, here, known)
    assert torch.allclose(again, step)
    assert more["count"].item() == 2


def test_one_output_says_by_how_much_the_second_class_is_nearer() -> None:
    x, y = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0.0, 1.0])
    now = RoundSettings(2, 2, 1.0, 0.0)
    here = torch.zeros(3)
    found = here - NearestMean(ClassSums(0.6)).follow(answer((x, y), outputs=1), now, here, {})[0]
    assert torch.allclose(found, torch.tensor([-60.0, 60.0, 0.0]), atol=1e-3)


def test_noise_is_shrunk_away_and_signal_is_not() -> None:
    rng = torch.Generator().manual_seed(2)
    noise = torch.full((200, 1), 0.5).double()
    signal = torch.randn(200, 2, generator=rng).double() * torch.tensor([0.0, 5.0])
    seen = signal + noise * torch.randn(200, 2, generator=rng).double()
    found = shrunk(seen, noise, seen.mean(0))
    assert (found[:, 0] - signal[:, 0]).square().mean() < 0.03  # noise alone has 0.25
    assert torch.allclose(found[:, 1], seen[:, 1], atol=0.3)


def noisy(signal: Tensor, noise: Tensor) -> Tensor:
    rng = torch.Generator().manual_seed(3)
    return signal + noise * torch.randn(signal.shape, generator=rng).double()


def test_directions_that_classes_share_are_kept_and_noise_is_not() -> None:
    rng = torch.Generator().manual_seed(4)
    noise = torch.linspace(0.5, 1.0, 30).double()[:, None]
    shared = torch.randn(30, 2, generator=rng).double() @ torch.randn(2, 400, generator=rng).double()
    seen = noisy(shared, noise)
    alone, together = (way(seen, noise, torch.zeros(400).double()) for way in (shrunk, shrunk_together))
    missed = [(found - shared).square().mean() for found in (seen, alone, together)]
    assert missed[2] < 0.4 * missed[1] < 0.4 * missed[0]
    nothing = shrunk_together(noisy(torch.zeros(30, 400).double(), noise), noise, torch.zeros(400).double())
    assert nothing.square().mean() < 0.15 * noise.square().mean()


def test_more_classes_than_numbers_are_shrunk_alike() -> None:
    noise = torch.full((400, 1), 1.0).double()
    found = shrunk_together(noisy(torch.zeros(400, 30).double(), noise), noise, torch.zeros(30).double())
    assert found.square().mean() < 0.15


def test_a_mean_lies_between_both_ways_to_shrink() -> None:
    sums = torch.cat([noisy(torch.zeros(6, 20).double(), torch.ones(1).double()), torch.full((6, 1), 60.0)], 1).double()
    found, _ = NearestMean(ClassSums(0.6)).means(sums, 1.0)
    counts = torch.full((6, 1), 100.0).double()
    seen, doubt, middle = sums[:, :-1] / (0.8 * counts), 1 / (0.8 * counts), sums[:, :-1].mean(0) / 80
    ways = (shrunk(seen, doubt, middle), shrunk_together(seen, doubt, middle))
    assert torch.allclose(found, 0.3 * ways[0] + 0.7 * ways[1])
    assert not torch.allclose(*ways)


def test_one_release_pays_for_everything_and_it_learns(blobs: Pair) -> None:
    centred = (blobs[0] - 1.5, blobs[1])  # each cloud in a direction of its own
    trained = fitted(centred)
    assert trained.guarantee.status == "proved"
    assert trained.guarantee.epsilon <= 4.0
    assert trained.call is not None
    assert trained.call.plan.rounds == 1
    (event,) = trained.call.plan.tally()
    assert isinstance(event, Gaussian)
    assert trained.evaluate(*centred)["accuracy"] > 0.9


@pytest.mark.parametrize(
    "steps",
    [
        {"lr": 0.5},
        {"momentum": 0.9},
        {"optimizer": "adam"},
        {"scheduler": lambda made: LambdaLR(made, float)},
        {"epochs": 4, "average_last": 0.5},
    ],
)
def test_any_other_step_is_refused_before_anything_is_released(
    blobs: Pair, tmp_path: Path, steps: dict[str, Any]
) -> None:
    with pytest.raises(SettingError, match=r"finds the weights themselves.*lr=1\.0"):
        fitted(blobs, folder=tmp_path / "run", **steps)
    assert not list(tmp_path.glob("run/ledger*"))


def test_a_folder_is_verified(blobs: Pair, tmp_path: Path) -> None:
    fitted(blobs, folder=tmp_path)
    assert rt.verify(tmp_path).ok


def test_noise_that_drowns_everything_still_gives_a_model(blobs: Pair) -> None:
    trained = fitted(blobs, epsilon=None, noise_multiplier=1e6)
    assert all(bool(torch.isfinite(part).all()) for part in trained.model.state_dict().values())


def test_bad_records_count_for_nothing(blobs: Pair) -> None:
    x, y = blobs
    odd = torch.full((2, x.shape[1]), float("nan"))
    dirty = (torch.cat([x, odd, x[:1]]), torch.cat([y, y[:2], torch.tensor([7])]))
    assert torch.allclose(answer(blobs), answer(dirty))


class Centre(nn.Module):
    """Takes the mean of all rows away: an example is in everybody's row."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0)


class OwnSequential(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        return self[-1](x)


class OwnLinear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return -super().forward(x)


@pytest.mark.parametrize("model", [OwnSequential(Centre(), nn.Linear(4, 2)), OwnLinear(4, 2)], ids=["whole", "layer"])
@pytest.mark.parametrize("method", ["class_means", "least_squares"])
def test_a_forward_of_ones_own_is_refused(model: nn.Module, method: str, blobs: Pair) -> None:
    with pytest.raises(ModelError, match="one linear layer"):
        rt.fit(model, blobs, method=method, epsilon=4.0, loss="cross_entropy", seed=0)


def test_a_layer_that_stands_in_front_too_is_refused() -> None:
    shared = nn.Linear(4, 4)
    with pytest.raises(ModelError, match="one linear layer"):
        parts_of(nn.Sequential(shared, nn.Tanh(), shared))


def test_rows_are_made_one_by_one_whatever_stands_in_front(blobs: Pair) -> None:
    """A loss that leaves out what mixes rows shows the checks of the loss nothing of it."""
    found = each_alone((Centre(),), blobs[0], 4)
    assert torch.equal(found, torch.zeros_like(blobs[0]))


class Picky(nn.Module):
    """Leaves out rows that it does not like."""

    def forward(self, x: Tensor) -> Tensor:
        return x[x[:, 0] <= 900]


def test_a_record_that_is_left_out_tells_of_itself_to_nobody(blobs: Pair) -> None:
    x = blobs[0].clone()
    x[3, 0] = 1000.0
    with pytest.raises(RuntimeError):
        each_alone((Picky(),), x, 4)
    found = each_alone((Picky(),), x, 4, nullcontext)
    assert found[3].isnan().all()
    assert torch.equal(torch.cat([found[:3], found[4:]]), torch.cat([x[:3], x[4:]]))
    model = nn.Sequential(Picky(), nn.Linear(4, 2))
    assert fitted((x, blobs[1]), model=model).guarantee.status == "proved"


class Within(nn.Module):
    """Changes its input in place, then keeps what it saw, and fails for tokens that there are not."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding.from_pretrained(torch.eye(4)[:, :3].contiguous())
        self.sign = 1.0

    def forward(self, x: Tensor) -> Tensor:
        found = self.table(x.sub_(1.0).long()).mean(1) * self.sign
        if float(x.max()) > 2.0:
            self.sign = -1.0
        if float(x.min()) < 1.0:
            self.sign = 1.0
        return found


@pytest.mark.parametrize("method", ["class_means", "least_squares"])
def test_a_bad_record_leaves_nothing_for_the_others(method: str) -> None:
    """In place, with state that a later row would put back: the first record differs, and fails or turns the sign."""
    y = torch.arange(60) % 2
    x = (y[:, None] + 1.0).expand(-1, 4).clone()

    def loss(model: nn.Module, batch: Pair) -> Tensor:
        return functional.cross_entropy(model[1](functional.one_hot(batch[1], 3).float()), batch[1], reduction="none")

    def asked(first: float) -> Tensor:
        x[0], x[-1] = first, 1.0
        model = nn.Sequential(Within(), nn.Linear(3, 2))
        task, now = Task(model, loss, Flat(model)), RoundSettings(60, 60, 1.0, 1.0)
        query = rt.methods.get(method).query(task, Clip(), now)
        drawn = Drawn(Draw(np.arange(60), Everyone(), now), np.random.default_rng(0), {}, as_store((x.clone(), y)))
        with torch.no_grad():
            return carefully(query, drawn, Guard(model)) / query.sensitivity

    assert (asked(50.0) - asked(3.0)).norm() <= 1
    with pytest.raises(ModelError, match="keeps something of the examples"):
        asked(4.0)


def test_classes_without_an_example_are_never_named() -> None:
    rng = torch.Generator().manual_seed(3)
    middles = functional.normalize(torch.randn(4, 16, generator=rng), dim=1)
    y = torch.arange(2000) % 4
    x = functional.normalize(middles[y] + 0.3 * torch.randn(2000, 16, generator=rng), dim=1)
    for noise in (0.0, 2.0):
        trained = fitted((x, y), model=nn.Linear(16, 50), epsilon=None, noise_multiplier=noise)
        named = trained.model(x).argmax(1)
        assert named.max() < 4
        assert (named == y).float().mean() > 0.9


@pytest.mark.parametrize("method", ["class_means", "least_squares"])
def test_numbers_are_no_classes(method: str, blobs: Pair) -> None:
    with pytest.raises(SettingError, match="for classes, not for numbers"):
        rt.fit(nn.Linear(4, 1), (blobs[0], blobs[0][:, 0]), method=method, epsilon=4.0, loss="mse", seed=0)


def test_labels_of_a_narrow_type_are_labels() -> None:
    found, known = classes_of(torch.tensor([0, 255], dtype=torch.uint8), 256)
    assert known.all()
    assert found.tolist() == [0, 255]


def test_other_models_and_heads_are_refused(blobs: Pair) -> None:
    with pytest.raises(ModelError, match="one linear layer"):
        fitted(blobs, model=nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)))
    for head in (0.0, 1.0, float("nan")):
        with pytest.raises(SettingError, match="head must lie between 0 and 1"):
            ClassSums(head)


def test_where_noise_hides_all_counts_all_classes_are_there() -> None:
    rng = torch.Generator().manual_seed(3)
    middles = functional.normalize(torch.randn(6, 8, generator=rng), dim=1)
    y = torch.arange(1200) % 6
    x = functional.normalize(middles[y] + 0.1 * torch.randn(1200, 8, generator=rng), dim=1)
    for seed in range(4):
        trained = fitted((x, y), model=nn.Linear(8, 6), epsilon=0.2, seed=seed)
        with torch.no_grad():
            assert len(trained.model(x).argmax(1).unique()) == 6


def test_a_class_without_examples_is_never_named_however_long_a_row_is() -> None:
    rng = torch.Generator().manual_seed(4)
    y = torch.arange(300) % 3
    middles = functional.normalize(torch.randn(3, 8, generator=rng), dim=1)
    x = functional.normalize(middles[y] + 0.2 * torch.randn(300, 8, generator=rng), dim=1)
    trained = fitted((x, y), model=nn.Linear(8, 5), epsilon=8.0)
    for length in (0.0, 1.0, 30.0, 1000.0):
        with torch.no_grad():
            assert int(trained.model(length * torch.randn(2000, 8, generator=rng)).argmax(1).max()) < 3
