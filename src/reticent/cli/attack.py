"""`reticent attack`: what a stored model gives away about its training examples."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

if TYPE_CHECKING:
    from reticent.attacks.game import Deal, Game
    from reticent.attacks.intervals import Floats
    from reticent.results import Result

USUAL = "loss,population,reference,shadow,lira,rmia,blackbox,whitebox"


def attack(
    run: Annotated[Path, Argument(help="Folder of a finished run.")],
    attacks: Annotated[str, Option(help="Names, with commas between.")] = USUAL,
    models: Annotated[int, Option(help="Shadow models, an even number.", min=4)] = 8,
    records: Annotated[int | None, Option(help="Members to be told from as many non-members; default 1000.")] = None,
    canaries: Annotated[int, Option(help="Canaries dealt to the shadows, for figures of the worst case.", min=0)] = 0,
    canary_kind: Annotated[str, Option(help="mislabelled, near-duplicates, blank or noise.")] = "mislabelled",
    jobs: Annotated[int, Option(help="Shadow models trained at the same time.", min=1)] = 1,
    out: Annotated[Path | None, Option(help="Folder for shadows and result; default: attack/ in the run's.")] = None,
    seed: Annotated[int, Option(help="Which records, which shadows.")] = 0,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Attack a model with shadows of its own pipeline; what was trained before a crash is not trained again."""
    from reticent.attacks.game import Game, deal, most_records
    from reticent.attacks.shadows import train_shadows
    from reticent.attacks.suite import check_attacks
    from reticent.checkpoint import replace_file
    from reticent.experiments.repeat import repeatable
    from reticent.results import read_result

    names = [name.strip() for name in attacks.split(",") if name.strip()]
    check_attacks(names)
    result = read_result(run)
    again = repeatable(result)
    game = Game(records or min(1000, most_records(again.dataset)), models, canaries, canary_kind, seed)
    cards, folder = deal(game, again.dataset), out if out is not None else run / "attack"
    logits = train_shadows(
        partial(train_shadow, result, game),
        models,
        jobs=jobs,
        folder=folder,
        design={"recipe": dict(result.recipe), **again.design(), **asdict(game)},
        tell=_tell,
    )
    answer = {"run": str(run), "guarantee": result.guarantee.to_json(), **_figures(run, result, cards, logits, names)}
    replace_file(folder / "attack.json", json.dumps(answer, indent=2).encode())
    print(json.dumps(answer) if as_json else _in_words(answer))


def train_shadow(result: Result, game: Game, number: int) -> Floats:
    """The logits of one shadow: the run's own pipeline, as many examples as the run had, coins of its own."""
    from reticent.attacks.game import deal
    from reticent.attacks.whitebox import logits_of
    from reticent.experiments.repeat import repeatable

    again = repeatable(result)
    cards = deal(game, again.dataset)
    trained = again.train(cards.train(number), seed=1_000_003 * (game.seed + 1) + number)
    return logits_of(trained.model, cards.asked())


def _figures(run: Path, result: Result, cards: Deal, logits: Floats, names: list[str]) -> dict[str, Any]:
    """Every attack on the target, the blind baseline, the shadows pooled, canaries, and the most exposed records."""
    from reticent.attacks.learned import blind
    from reticent.attacks.lira import lira_online
    from reticent.attacks.metrics import Scores
    from reticent.attacks.permitted import exceeds, permitted_accuracy
    from reticent.attacks.ranking import most_exposed
    from reticent.attacks.suite import run_attack
    from reticent.attacks.summary import summarise
    from reticent.attacks.thresholds import each_round
    from reticent.experiments.parts import model_of
    from reticent.experiments.repeat import repeatable
    from reticent.fitting import load

    epsilon, delta = result.guarantee.epsilon, result.guarantee.delta
    again = repeatable(result)
    target = cards.target(load(run, model_of(again.recipe, again.dataset)).model, logits)
    found = {name: run_attack(name, target) for name in names}
    matrix = each_round(target.signals(), lira_online)
    planted = cards.canary_signals(logits) if len(cards.canaries) else None
    worst = Scores.of(each_round(planted, lira_online), planted.keep) if planted is not None else None
    return {
        "attacks": [summarise(name, scores).to_json() for name, scores in found.items()],
        "pooled": summarise("lira, all shadows", Scores.of(matrix, target.keep)).to_json(),
        "canaries": summarise("lira, canaries", worst).to_json() if worst is not None else None,
        "blind": summarise("blind", blind(target.x.numpy(), target.members)).to_json(),
        "most_exposed": [asdict(one) for one in most_exposed(matrix, target.keep)],
        "permitted_balanced_accuracy": permitted_accuracy(epsilon, delta),
        "above_what_is_permitted": [name for name, scores in found.items() if exceeds(scores, epsilon, delta)],
        "shadows": len(target.keep),
        "records": len(target.members) // 2,
    }


def _tell(done: int, total: int) -> None:
    print(f"shadow models: {done} of {total}", file=sys.stderr, flush=True)


def _in_words(answer: dict[str, Any]) -> str:
    rows = [row for row in (*answer["attacks"], answer["pooled"], answer["canaries"], answer["blind"]) if row]
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
