"""`reticent attack`: what a stored model gives away about its training examples."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

if TYPE_CHECKING:
    from torch import nn

    from reticent.accounting import Guarantee
    from reticent.attacks.intervals import Floats
    from reticent.attacks.suite import Target
    from reticent.data import Dataset, Examples

USUAL = "loss,population,reference,shadow,lira,rmia,blackbox,whitebox"


def attack(
    run: Annotated[Path, Argument(help="Folder of a finished run.")],
    attacks: Annotated[str, Option(help="Names, with commas between.")] = USUAL,
    models: Annotated[int, Option(help="Shadow models, an even number.", min=4)] = 8,
    records: Annotated[int | None, Option(help="Members to be told from as many non-members; default 1000.")] = None,
    jobs: Annotated[int, Option(help="Shadow models trained at the same time.", min=1)] = 1,
    out: Annotated[Path | None, Option(help="Folder for shadows and result; default: attack/ in the run's.")] = None,
    seed: Annotated[int, Option(help="Which records, which shadows.")] = 0,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Attack a model with shadows of its own pipeline; what was trained before a crash is not trained again."""
    from reticent.attacks.shadows import train_shadows
    from reticent.attacks.suite import check_attacks
    from reticent.audits.stored import read_result
    from reticent.checkpoint import replace_file

    names = [name.strip() for name in attacks.split(",") if name.strip()]
    check_attacks(names)
    result = read_result(run)
    game = _game(result["recipe"], records, models, seed)
    folder = out if out is not None else run / "attack"
    logits = train_shadows(
        partial(train_shadow, game),
        models,
        jobs=jobs,
        folder=folder,
        design=json.loads(json.dumps(asdict(game))),
        tell=_tell,
    )
    answer = {"run": str(run), "guarantee": result["guarantee"], **_figures(_target(run, game, logits), names, result)}
    replace_file(folder / "attack.json", json.dumps(answer, indent=2).encode())
    print(json.dumps(answer) if as_json else _in_words(answer))


@dataclass(frozen=True)
class Game:
    """Which records are guessed, and which shadow sees which of them: all of it follows from these few numbers."""

    recipe: dict[str, Any]
    records: int
    models: int
    seed: int


def _game(recipe: dict[str, Any], records: int | None, models: int, seed: int) -> Game:
    from reticent.errors import SettingError

    dataset = dataset_of(recipe)
    if dataset.test is None:
        raise SettingError(f"{dataset.name} has no test split: an attack needs records that the model has not seen")
    most = min(len(dataset.train), 2 * len(dataset.test) // 3)
    chosen = min(1000, most) if records is None else records
    if not 10 <= chosen <= most:
        raise SettingError(f"--records must be between 10 and {most} for {dataset.name}, not {records}")
    return Game(recipe, chosen, models, seed)


def dataset_of(recipe: dict[str, Any]) -> Dataset:
    """The dataset of a stored recipe, loaded once."""
    return _loaded(json.dumps(recipe))


@lru_cache(maxsize=1)
def _loaded(recipe: str) -> Dataset:
    from reticent.experiments.recipe import Recipe
    from reticent.experiments.training import examples

    return examples(Recipe(**json.loads(recipe)))


def _parts(game: Game) -> tuple[Examples, Examples, Examples, Examples]:
    """Guessed members, guessed non-members, the population no model sees, and what every shadow is trained on."""
    import numpy as np

    dataset = dataset_of(game.recipe)
    assert dataset.test is not None
    rng = np.random.default_rng(game.seed)
    inside, outside = (rng.permutation(len(part)) for part in (dataset.train, dataset.test))
    return (
        dataset.train.take(inside[: game.records]),
        dataset.test.take(outside[: game.records]),
        dataset.test.take(outside[game.records :]),
        dataset.train.take(inside[game.records :]),
    )


def _guessed(game: Game) -> Examples:
    import torch

    from reticent.data import Examples

    members, outsiders, _, _ = _parts(game)
    return Examples(torch.cat([members.x, outsiders.x]), torch.cat([members.y, outsiders.y]))


def train_shadow(game: Game, number: int) -> Floats:
    """The logits of one shadow: the run's own recipe, as many examples as the run had, coins of its own."""
    import numpy as np
    import torch

    from reticent.attacks.signals import paired_design
    from reticent.attacks.whitebox import logits_of
    from reticent.data import Examples

    guessed, (_, _, population, always) = _guessed(game), _parts(game)
    seen = guessed.take(np.flatnonzero(paired_design(game.models, 2 * game.records, seed=game.seed)[number]))
    train = Examples(torch.cat([always.x, seen.x]), torch.cat([always.y, seen.y]))
    model, _ = retrain(game.recipe, train, seed=1_000_003 * (game.seed + 1) + number)
    return logits_of(model, torch.cat([guessed.x, population.x]))


def retrain(recipe: dict[str, Any], train: Examples, *, seed: int) -> tuple[nn.Module, Guarantee]:
    """The same recipe on other examples, with other coins: the identical pipeline."""
    from reticent.experiments.recipe import Recipe
    from reticent.experiments.training import prepare

    dataset = replace(dataset_of(recipe), train=train)
    run = prepare(replace(Recipe(**recipe), seed=seed), dataset)
    for _ in run:
        pass
    return run.model, run.guarantee()


def _target(run: Path, game: Game, logits: Floats) -> Target:
    import numpy as np

    from reticent.attacks.signals import paired_design
    from reticent.attacks.suite import Target
    from reticent.experiments.parts import model_of
    from reticent.experiments.recipe import Recipe
    from reticent.trained import load

    model = load(run, model_of(Recipe(**game.recipe), dataset_of(game.recipe))).model
    guessed, population = _guessed(game), _parts(game)[2]
    members = np.arange(2 * game.records) < game.records
    keep = paired_design(game.models, 2 * game.records, seed=game.seed)
    return Target(model, guessed.x, guessed.y, members, (population.x, population.y), logits, keep)


def _figures(target: Target, names: list[str], result: dict[str, Any]) -> dict[str, Any]:
    """Every attack on the target, the blind baseline, the shadows pooled, and the most exposed records."""
    import math

    from reticent.attacks.learned import blind
    from reticent.attacks.lira import lira_online
    from reticent.attacks.metrics import Scores
    from reticent.attacks.permitted import exceeds, permitted_accuracy
    from reticent.attacks.ranking import most_exposed
    from reticent.attacks.suite import run_attack
    from reticent.attacks.summary import summarise
    from reticent.attacks.thresholds import each_round

    said = result["guarantee"]["epsilon"]
    epsilon, delta = math.inf if said is None else said, result["guarantee"]["delta"]
    found = {name: run_attack(name, target) for name in names}
    signals = target.signals()
    matrix = each_round(signals, lira_online)
    return {
        "attacks": [summarise(name, scores).to_json() for name, scores in found.items()],
        "blind": summarise("blind", blind(target.x.numpy(), target.members)).to_json(),
        "pooled": summarise("lira, every shadow as target", Scores.of(matrix, target.keep)).to_json(),
        "most_exposed": [asdict(one) for one in most_exposed(matrix, target.keep)],
        "permitted_balanced_accuracy": permitted_accuracy(epsilon, delta),
        "above_what_is_permitted": [name for name, scores in found.items() if exceeds(scores, epsilon, delta)],
        "shadows": len(target.keep),
        "records": len(target.members) // 2,
    }


def _tell(done: int, total: int) -> None:
    print(f"shadow models: {done} of {total}", file=sys.stderr, flush=True)


def _in_words(answer: dict[str, Any]) -> str:
    rows = [*answer["attacks"], answer["pooled"], answer["blind"]]
    width = max(len(row["attack"]) for row in rows)
    lines = [f"{'':{width}}  AUC (95 %)            balanced accuracy  TPR at low FPR"]
    for row in rows:
        rates = ", ".join(f"{rate['tpr']:.2%} at {rate['fpr']:g}" for rate in row["at_low_rates"]) or "too few records"
        interval = f"{row['auc']:.3f} ({row['auc_low']:.3f}-{row['auc_high']:.3f})"
        lines.append(f"{row['attack']:{width}}  {interval:20}  {row['heldout']['balanced']:.3f}              {rates}")
    lines.append(f"{'':{width}}  permitted by the guarantee: {answer['permitted_balanced_accuracy']:.3f}")
    lines.append(f"{answer['shadows']} shadow models; {answer['records']} members, as many others; held-out thresholds")
    if answer["above_what_is_permitted"]:
        lines.append(f"ALARM: {', '.join(answer['above_what_is_permitted'])} did better than the guarantee permits")
    return "\n".join(lines)
