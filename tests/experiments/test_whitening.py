"""Whitening: second moments are bounded, charged and noisy with coins of their own, and shrink what stands out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from torch import nn

import reticent as rt
from reticent import data, models
from reticent.accounting import Gaussian, Ledger, Planned
from reticent.accounting.ledger import read_entries
from reticent.certificate import verify
from reticent.data.features.second_moments import SecondMoments, standing_out
from reticent.errors import DataError, ModelError, ResumeError, SettingError
from reticent.experiments import normalising, presets
from reticent.experiments.normalising import centre
from reticent.experiments.parts import model_of
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import prepare, train
from reticent.experiments.tuning import Searched, tune_recipe
from reticent.inside import Everyone, Randomness, RoundSettings, Vault, as_store, by_person
from reticent.inside.least_squares import unfolded
from reticent.inside.persons import Persons
from reticent.models.normalising import Centre, split_at
from reticent.models.whitening import Whiten
from reticent.trained import load
from reticent.whitened import whiten

RECIPE = Recipe(data="digits", noise_multiplier=2.0, epochs=1, whiten=5.0, seed=0).filled()


def summed(x: np.ndarray, *, whose: np.ndarray | None = None, before: nn.Module | None = None) -> torch.Tensor:
    """The private answer, of rows or of persons."""
    vault = Vault(
        by_person((torch.as_tensor(x), torch.zeros(len(x))), whose),
        randomness=Randomness.from_seed(0),
        ledger=Ledger(),
        allowance=Planned([Gaussian(1.0)]),
    )
    draw = vault.draw(Everyone(), RoundSettings(len(vault), len(vault), 1.0, 1.0))
    return vault.ask(SecondMoments(before or nn.Flatten(), x[0].size), draw)._value


@settings(max_examples=60, deadline=None)
@given(
    arrays_of.arrays(
        np.float64,
        st.tuples(st.integers(2, 6), st.integers(1, 4)),
        elements=st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.floats(-1e-160, 1e-160)),
    )
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_no_example_moves_the_moments_by_more_than_one(x: np.ndarray) -> None:
    everyone, limit = summed(x), SecondMoments(nn.Flatten(), 1).sensitivity
    assert torch.isfinite(everyone).all()
    for gone in range(len(x)):
        assert float((everyone - summed(np.delete(x, gone, axis=0))).norm()) <= limit * (1 + 1e-9)


def test_rows_so_short_that_their_squares_are_rounded_away_count_for_no_more() -> None:
    x = np.full((1, 3000), 1.5e-162)
    x[0, 0] = 1.6e-162
    assert float(summed(x).norm()) <= 1.0


def test_the_moments_are_those_of_rows_of_length_one_and_of_persons_by_the_mean() -> None:
    x = np.random.default_rng(0).normal(size=(5, 3)) * 40
    unit = torch.as_tensor(x / np.linalg.norm(x, axis=1, keepdims=True))
    assert torch.allclose(unfolded(summed(x), 3), unit.T @ unit)
    whose = np.array([0, 0, 1, 1, 1])
    each = [unit[whose == who] for who in (0, 1)]
    assert torch.allclose(unfolded(summed(x, whose=whose), 3), sum(one.T @ one / len(one) for one in each))
    with pytest.raises(DataError, match="3 numbers of each example"):
        SecondMoments(lambda rows: rows[:, :2], 3)._rows(torch.as_tensor(x))


def test_what_stands_out_is_found_and_shrunk_and_noise_is_left_alone() -> None:
    rng, wide, size, noise = torch.Generator().manual_seed(0), 200, 20_000, 20.0
    direction = nn.functional.normalize(torch.randn(wide, generator=rng, dtype=torch.float64), dim=0)
    upper = torch.triu(torch.randn(wide, wide, generator=rng, dtype=torch.float64)) * noise / 2**0.5
    symmetric = upper + upper.T - torch.diag(upper.diagonal()) * (2 - 2**0.5)
    directions, shares = standing_out(8000 * torch.outer(direction, direction) + symmetric, noise, size)
    assert len(directions) == len(shares) == 1, "the others are noise"
    assert abs(float(directions[0].double() @ direction)) > 0.99
    floor = 20 * size / wide
    assert float(shares[0]) == pytest.approx(1 - (floor / (floor + 8000)) ** 0.5, abs=0.01)
    both = torch.diag(torch.cat([torch.tensor([450.0, 900.0]), torch.zeros(wide - 2)])).double()
    directions, shares = standing_out(
        both,
        noise,
        200,
    )
    true = (torch.tensor([450.0, 900.0]) + (torch.tensor([450.0, 900.0]) ** 2 - 400**2).sqrt()) / 2
    assert torch.allclose(shares, 1 - (20 / (20 + true)).sqrt(), atol=1e-4), "without the noise they would be smaller"
    assert len(standing_out(both / 450 * 401, noise, 200)[1]) == 1, "noise alone may be a little beyond its edge"
    assert not len(standing_out(symmetric, noise, size)[1])


def test_the_layer_shrinks_and_scales_each_input_by_itself() -> None:
    layer = models.Whiten((1, 2, 2))
    layer.directions, layer.shares = torch.eye(4)[:1], torch.tensor([0.75])
    x = torch.tensor([[4.0, 3.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]).reshape(2, 1, 2, 2)
    wanted = 8 * nn.functional.normalize(torch.tensor([1.0, 3.0, 0.0, 0.0]), dim=0)
    assert torch.allclose(layer(x)[0].flatten(), wanted)
    assert not layer(x)[1].any()
    assert torch.equal(layer(x)[:1], layer(x[:1]))


def test_it_is_part_of_the_guarantee_and_verified(tmp_path: Path) -> None:
    dataset = data.load("digits")
    plain, whitened = (prepare(replace(RECIPE, whiten=noise), dataset) for noise in (None, 5.0))
    assert whitened.guarantee().epsilon > plain.guarantee().epsilon
    assert whitened.plan.already == (Gaussian(5.0),)
    recipe = replace(RECIPE, centre=20.0)
    answer = train(recipe, tmp_path)
    assert train(recipe, tmp_path, resume=True) == answer
    assert [entry.event for entry in read_entries(tmp_path / "whiten.jsonl")] == [Gaussian(5.0)]
    assert verify(tmp_path).ok
    loaded = load(tmp_path).model
    before, layer = split_at(Whiten, loaded)
    assert float(layer.shares.max()) > 0.1, "digits are brighter in the middle, all of them"
    assert [type(part).__name__ for part in before] == ["Flatten", "Centre"]
    assert rt.export(load(tmp_path), tmp_path / "out").exists()
    (tmp_path / "whiten.jsonl").unlink()
    assert not verify(tmp_path).ok


def test_a_run_that_broke_off_goes_on_with_the_same_directions(tmp_path: Path) -> None:
    def break_off(run: rt.Run, step: rt.Step) -> None:
        if step.number == 3:
            run.save()
            raise KeyboardInterrupt

    recipe = replace(RECIPE, epochs=2.0, batch_size=200.0)
    whole = train(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "parts", progress=break_off)
    parts = train(recipe, tmp_path / "parts", resume=True)
    assert parts.accuracy == whole.accuracy
    one, other = (load(tmp_path / name).model.state_dict() for name in ("whole", "parts"))
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("released", ["whiten", "centre"])
def test_what_rounds_were_made_with_is_not_released_again_when_it_is_gone(tmp_path: Path, released: str) -> None:
    def break_off(run: rt.Run, step: rt.Step) -> None:
        if step.number == 2:
            run.save()
            raise KeyboardInterrupt

    recipe = replace(RECIPE, centre=20.0, epochs=2.0, batch_size=200.0)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path, progress=break_off)
    for file in tmp_path.glob(f"{released}.*"):
        file.unlink()
    with pytest.raises(ResumeError, match=f"whose {released} is gone"):
        train(recipe, tmp_path, resume=True)


class Picky(nn.Module):
    """Fails on rows that begin with a large number, and says which."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if (x[:, 0] > 100).any():
            raise ValueError(f"a row begins with {x[:, 0].max()}")
        return x


def test_a_row_that_fails_counts_for_nothing_and_nobody_hears_of_it() -> None:
    x = np.random.default_rng(0).normal(size=(6, 3))
    wild = np.concatenate([x, [[4711.0, 0.0, 0.0]]])
    assert torch.allclose(summed(wild, before=Picky()), summed(x))
    network = models.with_centre(nn.Sequential(Picky(), nn.Linear(3, 2)), (3,))
    centre(network, data.Examples(torch.as_tensor(wild).float(), torch.zeros(7).long()), 1e-6, seed=0, folder=None)
    assert torch.allclose(split_at(Centre, network)[1].mean.double() * 7, torch.as_tensor(cut(x)).sum(0), atol=1e-3)
    with pytest.raises(ModelError, match="fails for every example"):
        summed(wild[-1:], before=Picky())


def cut(x: np.ndarray) -> np.ndarray:
    """Rows no longer than a centre's limit."""
    return x * np.minimum(1, 3**0.5 / np.linalg.norm(x, axis=1, keepdims=True))


def test_loading_fits_the_layer_or_is_refused_and_other_weights_leave_it_alone() -> None:
    layer = models.Whiten((4,))
    layer.load_state_dict({"directions": torch.eye(4)[:2], "shares": torch.ones(2)})
    layer.load_state_dict({}, strict=False)
    assert layer.shares.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="size mismatch"):
        layer.load_state_dict({"directions": torch.ones(2, 7), "shares": torch.ones(2)})
    double = models.Whiten((4,)).double()
    double.load_state_dict({"directions": torch.eye(4)[:1], "shares": torch.ones(1)})
    assert double.directions.dtype == torch.float64
    assert models.Whiten((4,))(torch.rand(2, 4).double()).dtype == torch.float64
    pair = torch.rand(200, 4).double(), torch.randint(0, 2, (200,))
    asked = rt.normalise(pair, budget_share=0.2, whiten=True)
    assert rt.fit(nn.Linear(4, 2).double(), asked, epsilon=3.0, epochs=1, seed=0).guarantee.epsilon <= 3.0


def test_the_declared_size_counts_and_not_how_many_there_are() -> None:
    """At the same noise and rows, shares are of the floor that the declared number sets."""
    x = nn.functional.normalize(torch.randn(500, 30, generator=torch.Generator().manual_seed(0)), dim=1) + 1.0
    found = {}
    for size in (500, 5000):
        network = models.with_whiten(nn.Sequential(nn.Linear(30, 2)), (30,))
        whiten(network, as_store((x, torch.zeros(500).long())), 5.0, size=size, seed=0, folder=None)
        found[size] = float(split_at(Whiten, network)[1].shares[-1])
    moments = 500.0  # nearly all of it lies in one direction
    for size, share in found.items():
        floor = 20 * size / 30
        assert share == pytest.approx(1 - (floor / (floor + moments)) ** 0.5, abs=0.03)
    recipe = replace(RECIPE, size=20_000)
    dataset = data.load("digits")
    shares = [
        float(split_at(Whiten, prepare(one, dataset).model)[1].shares.max())
        for one in (recipe, replace(recipe, size=None))
    ]
    assert shares[0] < shares[1] / 2


def test_persons_count_once_however_many_rows_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe with groups hands its persons to the release, with the most rows that each may have."""
    seen: list[object] = []
    monkeypatch.setattr(normalising, "whiten", lambda _model, people, *_args, **_settings: seen.append(people))
    x, whose = torch.rand(40, 4), torch.arange(40) // 4
    examples = data.Examples(x, torch.zeros(40).long(), groups=whose)
    recipe = Recipe(data="digits", groups="who", most_rows=2, whiten=5.0)
    normalising.normalise(nn.Linear(4, 2), examples, recipe, None)
    people = seen[0]
    assert isinstance(people, Persons)
    assert (len(people), people.most_rows) == (10, 2)


@pytest.mark.filterwarnings("ignore:`torch.jit.load`")
@pytest.mark.parametrize("form", ["torchscript", "torch-export"])
def test_other_forms_answer_the_same(tmp_path: Path, form: str) -> None:
    train(RECIPE, tmp_path / "run")
    trained = load(tmp_path / "run")
    path = rt.export(trained, tmp_path / "out", form)
    x = torch.rand(3, 1, 8, 8)
    there = torch.jit.load(path) if form == "torchscript" else torch.export.load(path).module()  # type: ignore[no-untyped-call]
    assert torch.allclose(there(x), trained.model(x), atol=1e-5)


@pytest.mark.parametrize("seed", [0, None])
def test_after_a_crash_nothing_is_released_again(tmp_path: Path, seed: int | None) -> None:
    dataset = data.load("digits")
    first, again = (model_of(RECIPE, dataset) for _ in range(2))
    for model in (first, again):
        whiten(model, as_store(dataset.train.as_columns()), 5.0, seed=seed, folder=tmp_path)
    assert torch.equal(split_at(Whiten, first)[1].directions, split_at(Whiten, again)[1].directions)
    assert len(read_entries(tmp_path / "whiten.jsonl")) == 1


def test_an_exported_model_answers_the_same_without_reticent(tmp_path: Path) -> None:
    trained = rt.fit(
        nn.Linear(4, 2),
        rt.normalise((torch.rand(300, 4), torch.randint(0, 2, (300,))), budget_share=0.2, whiten=True),
        epsilon=3.0,
        epochs=1,
        seed=0,
        folder=tmp_path / "run",
    )
    assert [entry.event for entry in read_entries(tmp_path / "run" / "whiten.jsonl")]
    assert verify(tmp_path / "run").ok
    x = torch.rand(5, 4)
    assert torch.equal(rt.load(tmp_path / "run", nn.Linear(4, 2)).predict(x), trained.predict(x))
    script = rt.export(trained, tmp_path / "out")
    names: dict[str, object] = {"__name__": "exported", "__file__": str(script)}
    exec(compile(script.read_text(), str(script), "exec"), names)
    assert torch.allclose(names["load"]()(x), trained.model(x))  # type: ignore[operator]


def test_a_preset_whitens_runs_with_a_budget_and_the_datasets_own_network(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Recipe(data="fashion-mnist", epsilon=3.0, delta=1e-5).filled()
    assert found.whiten == 5.6
    assert found.filled() == found
    assert Recipe(data="fashion-mnist", epsilon=1.0, delta=1e-5).filled().whiten == 15.0
    assert Recipe(data="fashion-mnist", epsilon=3.0, whiten=9.0).filled().whiten == 9.0
    assert Recipe(data="fashion-mnist", epsilon=3.0, whiten=0.0).filled().whiten is None
    assert Recipe(data="fashion-mnist", epsilon=3.0, delta=1e-8).filled().whiten == 7.3
    for said in ({"features": "scattering-whitened"}, {"model": "cnn"}, {"views": "mirror"}, {"method": "pd_sgd"}):
        assert Recipe(data="fashion-mnist", epsilon=3.0, **said).filled().whiten is None, said  # type: ignore[arg-type]
    assert Recipe(data="fashion-mnist", noise_multiplier=3.0).filled().whiten is None
    noises = [Recipe(data="imdb", epsilon=some, delta=1e-5).filled().statistics_noise for some in (1.0, 3.0, 8.0)]
    assert noises == [53.0, 20.0, 8.6]
    assert Recipe(data="imdb", epsilon=3.0, statistics_noise=0.0).filled().statistics_noise is None
    assert Recipe(data="imdb", epsilon=3.0, model="rnn").filled().statistics_noise is None
    table = presets.presets()
    digits = {**table["data"]["digits"], "whiten_share": 0.25}
    monkeypatch.setattr(presets, "presets", lambda: {**table, "data": {"digits": digits}})
    recipe = Recipe(data="digits", epsilon=3.0, epochs=1, batch_size=300, seed=0)
    run = prepare(recipe.filled(), data.load("digits"))
    assert len(run.plan.already) == 1
    assert run.guarantee().epsilon <= 3.0
    search = Searched(aside=200, choices=[{"lr": 0.3}], trials=1.5)
    assert tune_recipe(recipe, search)[0].guarantee.status == "proved", "a search releases nothing first"


def test_what_cannot_be_whitened_says_so() -> None:
    with pytest.raises(SettingError, match="at most 4,096 numbers"):
        models.with_whiten(nn.Sequential(nn.Linear(5000, 2)), (5000,))
    with pytest.raises(ModelError, match="without weights"):
        models.with_whiten(nn.Sequential(nn.Flatten()), (4,))
    with pytest.raises(ModelError, match="leave out centre and whiten"):
        models.Blueprint(model="linear", inputs=(512,), classes=2, whiten=True, buckets=4096).build()
    with pytest.raises(SettingError, match="takes no centre, whiten"):
        train(Recipe(data="digits", method="selena", whiten=20.0, epochs=1))
    with pytest.raises(SettingError, match="one length: leave out low and high"):
        rt.normalise((torch.rand(3, 2), torch.zeros(3).long()), budget_share=0.1, low=-1.0, whiten=True)
