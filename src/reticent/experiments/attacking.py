"""Attack a stored run: shadows of its own pipeline, every attack on its model, and one report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from torch import nn

from reticent.accounting import Guarantee
from reticent.attacks.game import Game
from reticent.attacks.games import Cards, deal_cards, rules_of
from reticent.attacks.intervals import Floats
from reticent.attacks.learned import blind
from reticent.attacks.lira import lira_online
from reticent.attacks.metrics import Scores
from reticent.attacks.permitted import exceeds, permitted_accuracy
from reticent.attacks.ranking import Exposed, most_exposed
from reticent.attacks.shadows import Tell, train_shadows
from reticent.attacks.suite import Target, run_attack
from reticent.attacks.summary import Summary, summarise
from reticent.attacks.thresholds import each_round
from reticent.attacks.verdict import Beside, verdict
from reticent.attacks.whitebox import logits_of
from reticent.data import Dataset, Examples
from reticent.errors import SettingError
from reticent.experiments.repeat import Again, repeatable
from reticent.experiments.stored import with_parts
from reticent.files import private_folder, stored_at, write_private
from reticent.results import read_result
from reticent.results.sealing import seal
from reticent.trained import load

ATTACK = Path("attack", "attack.json")
"""Where the report about a run is kept, in its private folder; its shadows lie beside it, and the page shows it."""
FEWEST_TO_POOL = 4
"""LiRA on a shadow needs others with and without each record."""
BLIND = 1000
"""So many members, and as many others, are shown to the blind baseline: it is a sanity check, and slow."""


@dataclass(frozen=True, kw_only=True)
class AttackReport:
    """What attacks found out about the members of one stored run, beside what its guarantee permits."""

    run: str
    guarantee: Guarantee
    attacks: tuple[Summary, ...]
    pooled: Summary | None
    """LiRA on every shadow in turn; None with a single shadow."""
    canaries: Summary | None
    """LiRA on the canaries alone: the worst case, where the others tell of the average."""
    blind: Summary
    """A classifier that never asks the model: away from 0.5, members differ from others by themselves."""
    most_exposed: tuple[Exposed, ...]
    permitted_balanced_accuracy: float
    above_what_is_permitted: tuple[str, ...]
    """The attacks that surely did better than the guarantee permits: a bug alarm."""
    shadows: int
    records: int
    game: str = "online"

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        epsilon, delta = self.guarantee.epsilon, self.guarantee.delta
        return verdict(self.attacks, Beside(self.blind, self.canaries, self.above_what_is_permitted), epsilon, delta)

    def to_json(self) -> dict[str, object]:
        """Everything as plain JSON data."""
        return {
            "run": self.run,
            "sentence": self.sentence,
            "guarantee": self.guarantee.to_json(),
            "attacks": [summary.to_json() for summary in self.attacks],
            "pooled": self.pooled.to_json() if self.pooled is not None else None,
            "canaries": self.canaries.to_json() if self.canaries is not None else None,
            "blind": self.blind.to_json(),
            "most_exposed": [asdict(one) for one in self.most_exposed],
            "permitted_balanced_accuracy": self.permitted_balanced_accuracy,
            "above_what_is_permitted": list(self.above_what_is_permitted),
            "shadows": self.shadows,
            "records": self.records,
            "game": self.game,
        }


@dataclass(frozen=True, kw_only=True)
class Attacking:
    """How to attack; the attacks are those usual in the game, and records as many as there can be up to 1000."""

    attacks: tuple[str, ...] | None = None
    models: int = 8
    records: int | None = None
    canaries: int = 0
    canary_kind: str = "mislabelled"
    jobs: int | None = None
    cluster: str | None = None
    seed: int = 0
    game: str = "online"
    tell: Tell = lambda _done, _total: None

    def names(self) -> tuple[str, ...]:
        """The attacks that are played; those that the game cannot play are refused."""
        rules = rules_of(self.game, self.attacks or ())
        return self.attacks or rules.usual

    def played(self, dataset: Dataset, spare: Examples | None) -> Game:
        """The game that is played on a dataset."""
        rules = rules_of(self.game)
        records = self.records or min(1000, rules.most(dataset, spare))
        models = rules.shadows or self.models
        return Game(records, models, self.canaries, self.canary_kind, self.seed, self.game)


def attack_run(
    folder: str | Path,
    *,
    data: str | None = None,
    model: str | None = None,
    attacks: Sequence[str] | None = None,
    models: int = 8,
    records: int | None = None,
    canaries: int = 0,
    canary_kind: str = "mislabelled",
    jobs: int | None = None,
    cluster: str | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    game: str = "online",
    tell: Tell = lambda _done, _total: None,
) -> AttackReport:
    """Attack the model of a finished run with `models` shadows of its own pipeline, and keep report and shadows.

    `records` members (1000, or as many as there can be) are told from as many others. What is kept lies in `out`, or
    in private/attack/ in the run's folder: after a crash, only the missing shadows are trained; `jobs` of them at a
    time, or on a `cluster`. A run that was made in Python does not know where its `data` come from, nor which factory
    makes its `model`: they are named here. `game` says what the shadows are trained on: "online", "shadow" or "salem"
    (docs/attacks.md).
    """
    asked = Attacking(
        attacks=None if attacks is None else tuple(attacks),
        models=models,
        records=records,
        canaries=canaries,
        canary_kind=canary_kind,
        jobs=jobs,
        cluster=cluster,
        seed=seed,
        game=game,
        tell=tell,
    )
    asked.names()  # refused before anything is loaded
    run = Path(folder)
    result = with_parts(read_result(run), data=data, model=model)
    again = repeatable(result)
    target = Attacked(load(run, again.network()).model, result.guarantee, str(run), result.recipe)
    return attack_again(again, target, asked, Path(out) if out is not None else attack_folder(run))


@dataclass(frozen=True, eq=False)
class Attacked:
    """The model that is attacked, and what is said of it."""

    model: nn.Module
    guarantee: Guarantee
    run: str
    recipe: Mapping[str, object]


def attack_again(again: Again, attacked: Attacked, asked: Attacking, kept: Path | None) -> AttackReport:
    """Attack a model with shadows of the training that made it; report and shadows are kept if there is a place."""
    names = asked.names()
    if attacked.guarantee.unit != "example":
        raise SettingError(
            "attacks tell one row from another, but this run promises for whole persons: use `reticent audit`, where "
            "each canary is a person"
        )
    game = asked.played(again.dataset, again.spare)
    cards = deal_cards(game, again.dataset, again.spare)
    logits = train_shadows(
        partial(train_shadow, again, game),
        game.models,
        jobs=asked.jobs,
        cluster=asked.cluster,
        folder=kept,
        design={"recipe": dict(attacked.recipe), **again.design(), **game.design()},
        tell=asked.tell,
    )
    attacked = _anew(again, game, cards, attacked)
    target = cards.target(attacked.model, logits)
    report = _report(attacked, names, target, _worst(cards, logits), game)
    if kept is not None:
        write_private(kept / ATTACK.name, seal(report.to_json(), indent=2))
    return report


def attack_folder(run: Path) -> Path:
    """Where an attack on the run in a folder keeps what it found out."""
    return stored_at(private_folder(run).parent, ATTACK.parent.name)


def train_shadow(again: Again, game: Game, number: int) -> Floats:
    """The logits of one shadow: the run's own pipeline on the examples that it was dealt, coins of its own."""
    cards = deal_cards(game, again.dataset, again.spare)
    trained = again.train(cards.train(number), seed=_seed(game) + number)
    return logits_of(trained.model, cards.asked())


def _anew(again: Again, game: Game, cards: Cards, attacked: Attacked) -> Attacked:
    """The target: as it is, or trained by its own pipeline on what the game deals it, with the guarantee of that."""
    if cards.anew is None:
        return attacked
    trained = again.train(cards.anew, seed=_seed(game) - 1)
    return replace(attacked, model=trained.model.cpu(), guarantee=trained.guarantee)


def _seed(game: Game) -> int:
    return 1_000_003 * (game.seed + 1)


def _worst(cards: Cards, logits: Floats) -> Scores | None:
    """What LiRA says of the canaries."""
    planted = cards.canary_signals(logits)
    return None if planted is None else Scores.of(each_round(planted, lira_online), planted.keep)


def _report(
    attacked: Attacked, attacks: Sequence[str], target: Target, worst: Scores | None, game: Game
) -> AttackReport:
    """Every attack on the target, the blind baseline, the shadows pooled, canaries, and the most exposed records."""
    guarantee = attacked.guarantee
    epsilon, delta = guarantee.epsilon, guarantee.delta
    found = {name: run_attack(name, target) for name in attacks}
    signals = target.signals()
    matrix = each_round(signals, lira_online) if len(signals.phi) >= FEWEST_TO_POOL else None
    few = np.concatenate([np.flatnonzero(side)[:BLIND] for side in (target.members, ~target.members)])
    return AttackReport(
        run=attacked.run,
        guarantee=guarantee,
        attacks=tuple(summarise(name, scores) for name, scores in found.items()),
        pooled=None if matrix is None else summarise("lira, all shadows", Scores.of(matrix, signals.keep)),
        canaries=summarise("lira, canaries", worst) if worst is not None else None,
        blind=summarise("blind", blind(target.x[few].numpy(), target.members[few])),
        most_exposed=() if matrix is None or game.kind != "online" else tuple(most_exposed(matrix, signals.keep)),
        permitted_balanced_accuracy=permitted_accuracy(epsilon, delta),
        above_what_is_permitted=tuple(name for name, scores in found.items() if exceeds(scores, epsilon, delta)),
        shadows=len(target.logits),
        records=len(target.members) // 2,
        game=game.kind,
    )
