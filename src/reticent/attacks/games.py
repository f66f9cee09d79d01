"""The games by name: who is trained on what, and which attacks can be played."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reticent.attacks.apart import Apart, deal_apart, deal_salem, most_apart, most_salem, refuse_canaries
from reticent.attacks.game import Deal, Game, deal, most_records
from reticent.attacks.suite import ATTACKS, check_attacks
from reticent.data import Dataset, Examples
from reticent.errors import SettingError, UnknownName

Cards = Deal | Apart
DealCards = Callable[[Game, Dataset, Examples | None], Cards]


@dataclass(frozen=True)
class Rules:
    """How a game is dealt, how many members it can have, and its attacks."""

    deal: DealCards
    most: Callable[[Dataset, Examples | None], int]
    usual: tuple[str, ...]
    """The attacks that are played if nobody says which."""
    refused: tuple[str, ...] = ()
    """The attacks that need what this game does not give."""
    shadows: int | None = None
    """How many shadows it has, where that is part of the game."""


GAMES: dict[str, Rules] = {
    "online": Rules(
        deal, most_records, ("loss", "population", "reference", "shadow", "lira", "rmia", "blackbox", "whitebox")
    ),
    "shadow": Rules(
        deal_apart,
        most_apart,
        ("loss", "population", "reference", "shadow", "lira-offline", "rmia", "blackbox", "whitebox"),
        refused=("lira", "rmia-online"),
    ),
    "salem": Rules(
        deal_salem,
        most_salem,
        ("blackbox", "blackbox-forest", "whitebox"),
        refused=("population", "lira", "lira-offline", "rmia", "rmia-online"),
        shadows=1,
    ),
}


def rules_of(kind: str, attacks: Sequence[str] = ()) -> Rules:
    """The rules of a game by its name; attacks that it cannot play are refused.

    >>> rules_of("salem").usual
    ('blackbox', 'blackbox-forest', 'whitebox')
    """
    if kind not in GAMES:
        raise UnknownName("game", kind, GAMES)
    check_attacks(attacks)
    rules = GAMES[kind]
    for name in attacks:
        if name in rules.refused:
            possible = ", ".join(other for other in ATTACKS if other not in rules.refused)
            raise SettingError(
                f"{name} cannot be played in the game {kind}: play the online game, or one of {possible}"
            )
    return rules


def deal_cards(game: Game, dataset: Dataset, spare: Examples | None = None) -> Cards:
    """Deal the cards of a game by its kind; `spare` are examples like the others that nobody was trained on."""
    if game.kind != "online":
        refuse_canaries(game)
    return rules_of(game.kind).deal(game, dataset, spare)
