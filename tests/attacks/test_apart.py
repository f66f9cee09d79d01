"""Games whose shadows never see the target's records: dealt apart, and members of an over-fitted model are found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from reticent.attacks.batched import ShadowRecipe, train_together
from reticent.attacks.game import Game
from reticent.attacks.games import GAMES, deal_cards, rules_of
from reticent.attacks.metrics import auc, auc_standard_error
from reticent.attacks.suite import ATTACKS, run_attack
from reticent.attacks.whitebox import logits_of
from reticent.data import Dataset, Examples
from reticent.errors import SettingError, UnknownName
from reticent.experiments.attacking import attack_run
from reticent.experiments.recipe import Recipe
from reticent.experiments.repeat import repeatable
from reticent.experiments.training import train
from reticent.results import Result


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(900, 12, generator=rng)
    noisy = torch.randint(0, 3, (900,), generator=rng)
    y = torch.where(torch.rand(900, generator=rng) < 0.4, noisy, (x @ torch.randn(12, 3, generator=rng)).argmax(1))
    return Dataset("noisy", Examples(x[:250], y[:250]), Examples(x[250:], y[250:]), 3, "made up")


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 3))


def overfit(examples: Examples) -> nn.Module:
    recipe = ShadowRecipe(steps=200, batch_size=60, learning_rate=0.5)
    (model,) = train_together([network()], examples.x, examples.y, [np.arange(len(examples))], recipe, [0])
    return model


@pytest.mark.parametrize(("kind", "models"), [("shadow", 4), ("salem", 1)])
def test_members_of_an_overfitted_target_are_found_by_every_attack_of_the_game(
    dataset: Dataset, kind: str, models: int
) -> None:
    cards = deal_cards(Game(records=100, models=models, kind=kind), dataset)
    logits = np.stack([logits_of(overfit(cards.train(number)), cards.asked()) for number in range(models)])
    target = cards.target(overfit(dataset.train if cards.anew is None else cards.anew), logits)
    for name in GAMES[kind].usual:
        assert auc(run_attack(name, target)) > 0.6, name


def test_nothing_is_found_in_an_untrained_target(dataset: Dataset) -> None:
    cards = deal_cards(Game(records=100, models=1, kind="salem"), dataset)
    scores = run_attack("blackbox-forest", cards.target(network(), logits_of(network(), cards.asked())[None]))
    assert abs(auc(scores) - 0.5) < 4 * auc_standard_error(scores)


def test_salem_cuts_two_to_one_to_two_to_one(dataset: Dataset) -> None:
    cards = deal_cards(Game(records=150, models=1, kind="salem"), dataset)
    assert (len(cards.anew or ()), len(cards.train(0)), len(cards.pool)) == (300, 300, 450)


def test_shadows_have_no_more_examples_than_the_target_and_use_what_a_subset_left_out(dataset: Dataset) -> None:
    game = Game(records=50, models=4, kind="shadow")
    few = deal_cards(game, dataset)
    spare = Examples(100 + torch.rand(600, 12), torch.zeros(600, dtype=torch.long))
    many = deal_cards(game, dataset, spare)
    assert {len(cards.train(number)) for cards in (few, many) for number in range(4)} == {250}
    assert any((many.train(number).x > 50).any() for number in range(4))


def test_an_attack_that_a_game_cannot_play_is_refused_by_name() -> None:
    for kind, rules in GAMES.items():
        for name in rules.refused:
            with pytest.raises(SettingError, match=f"{name} cannot be played in the game {kind}"):
                rules_of(kind, [name])
        assert set(rules.usual) <= set(ATTACKS) - set(rules.refused)
    with pytest.raises(UnknownName, match="salem"):
        rules_of("salam")


def test_canaries_belong_to_the_online_game(dataset: Dataset) -> None:
    with pytest.raises(SettingError, match="online"):
        deal_cards(Game(records=50, models=4, canaries=4, kind="shadow"), dataset)


@pytest.mark.parametrize("game", ["shadow", "salem"])
def test_a_run_is_attacked_in_each_game(game: str, tmp_path: Path) -> None:
    """In Salem's the target is trained anew, and the guarantee beside the figures is that of this target."""
    stored = train(Recipe(data="digits", epsilon=3.0, epochs=1, seed=0), tmp_path)
    report = attack_run(tmp_path, game=game, attacks=["blackbox"], models=4, records=50)
    assert (report.game, report.shadows) == (game, 1 if game == "salem" else 4)
    assert (report.pooled is None) == (game == "salem")
    assert report.to_json()["game"] == game
    assert (report.guarantee == stored.guarantee) == (game == "shadow")
    assert report.guarantee.epsilon <= 3.0


def test_what_a_subset_left_out_is_there_for_the_shadows() -> None:
    recipe = Recipe(data="digits", subset=500, epsilon=3.0).filled()
    again = repeatable(Result(run="a", label="a", recipe=recipe.to_json()))
    assert (len(again.dataset.train), len(again.spare or ())) == (500, 937)
    rows = [
        {row.numpy().tobytes() for row in part.x} for part in (again.dataset.train, again.spare or again.dataset.train)
    ]
    assert len(rows[0] & rows[1]) < 5, "but for the few images that are there twice"
