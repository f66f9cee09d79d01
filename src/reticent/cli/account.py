"""`reticent account`: what a run costs from its public numbers, proved and as claimed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

if TYPE_CHECKING:
    from reticent.accounting import Guarantee
    from reticent.experiments.quoting import Quote, Scale
    from reticent.experiments.recipe import Recipe

SHOWN = ("epsilon", "delta", "status", "route", "route_name", "order", "accountant", "rdp", "pld", "as_claimed")
ALSO = ("why", "adjacency", "unit", "assumptions")

# The flags that every method has, here and in `plan`; everything else is set as for `train`.
Method = Annotated[str | None, Option(help="Which method: see `reticent methods`. [default: dpsgd]")]
Data = Annotated[str | None, Option(help="A dataset: its size, and its preset where nothing is said.")]
Size = Annotated[int | None, Option(help="Declared number of examples: one more or less changes nothing.", min=1)]
Adjacency = Annotated[str | None, Option(help="zero-out, add-or-remove (needs --size) or replace.")]
DataSize = Annotated[int | None, Option(help="Number of training examples, instead of a dataset.", min=1)]
BatchSize = Annotated[float | None, Option(help="Expected batch size.")]
SampleRate = Annotated[float | None, Option(help="Batch size over data size, where only that is known.")]
Rounds = Annotated[
    int | None,
    Option("--rounds", "--steps", "--attempts", help="Rounds, fixed before the run (attempts, if it selects).", min=1),
]
Epochs = Annotated[float | None, Option(help="Epochs, instead of rounds.")]
Noise = Annotated[float | None, Option(help="Noise as a multiple of what one example can add.")]
Delta = Annotated[float | None, Option(help="Delta; if not given, 1e-5 or less, by the data size.")]
Settings = Annotated[list[str] | None, Option("--set", help="Any setting of `train` or the method: key=value.")]
Accountant = Annotated[str, Option(help="best, pld or rdp.")]
AsJson = Annotated[bool, Option("--json", help="Answer in JSON on stdout.")]


def account(
    method: Method = None,
    data: Data = None,
    data_size: DataSize = None,
    batch_size: BatchSize = None,
    sample_rate: SampleRate = None,
    rounds: Rounds = None,
    epochs: Epochs = None,
    noise_multiplier: Noise = None,
    epsilon: Annotated[float | None, Option(help="Budget of a method that spends it as it goes (DPIS, DPAGD).")] = None,
    delta: Delta = None,
    size: Size = None,
    adjacency: Adjacency = None,
    accepted: Annotated[int | None, Option(help="Accepted updates, for the paper's claim.", min=0)] = None,
    orders: Annotated[str, Option(help="Orders of the paper's claim: paper (2..64) or code.")] = "paper",
    settings: Settings = None,
    accountant: Accountant = "best",
    from_opacus: Annotated[Path | None, Option(help="A checkpoint of Opacus, or its history as JSON.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a run costs: the epsilon that is proved, and the one the method's paper claims."""
    if from_opacus is not None:
        beside: dict[str, object] = {
            "data": data,
            "data-size": data_size,
            "batch-size": batch_size,
            "sample-rate": sample_rate,
        }
        beside |= {"rounds": rounds, "epochs": epochs, "noise-multiplier": noise_multiplier, "epsilon": epsilon}
        beside |= {"size": size, "adjacency": adjacency, "accepted": accepted, "set": settings}
        return _foreign(from_opacus, delta, as_json, [name for name, value in beside.items() if value is not None])
    from reticent.accounting.claims.claimed import check_orders
    from reticent.experiments.quoting import nothing_proved, quote

    method = method or said_method(settings) or "dpsgd"
    guarantee = nothing_proved(method, delta)
    found: dict[str, float] = {}
    if guarantee is None:
        flags: dict[str, object] = {"noise_multiplier": noise_multiplier, "epsilon": epsilon, "delta": delta}
        flags |= {"method": method, "data": data, "batch_size": batch_size, "epochs": epochs}
        flags |= {"size": size, "adjacency": adjacency}
        recipe, scale = read(flags, settings, data_size, sample_rate, rounds, accountant)
        quoted = quote(recipe, scale, accepted=accepted, orders=check_orders(orders))
        guarantee, found = quoted.guarantee, numbers(quoted)
    _tell(guarantee, found, as_json)


def _tell(guarantee: Guarantee, found: dict[str, float], as_json: bool) -> None:
    told = guarantee.to_json()
    answer = {name: told[name] for name in (*SHOWN, *ALSO)} | found
    print(json.dumps(answer) if as_json else "\n".join([*in_words(guarantee), *shown(found)]))


def _foreign(path: Path, delta: float | None, as_json: bool, beside: list[str]) -> None:
    """What somebody else's run with Opacus costs; what was said beside the file would be left out in silence."""
    from reticent.errors import SettingError
    from reticent.integrations.opacus.foreign import guarantee_of

    if beside:
        raise SettingError(f"--from-opacus takes everything but delta from the file: leave out --{beside[0]}")
    _tell(*guarantee_of(path, 1e-5 if delta is None else delta), as_json)


def said_method(settings: list[str] | None) -> str | None:
    """The method, where `--set` says it."""
    from reticent.experiments.recipe import parse_changes

    return parse_changes(settings or []).get("method")


def read(
    flags: Mapping[str, object],
    settings: list[str] | None,
    data_size: int | None,
    sample_rate: float | None,
    rounds: int | None,
    accountant: str,
    *,
    suited: bool = False,
) -> tuple[Recipe, Scale]:
    """Flags and settings as `train` would read them; with a dataset, filled in by its preset and size."""
    from reticent.accounting.pricing import check_accountant
    from reticent.errors import SettingError
    from reticent.experiments.quoting import Scale, of_dataset
    from reticent.experiments.recipe import check, parse_changes, read_recipe

    given = {name: value for name, value in flags.items() if value is not None}
    recipe = read_recipe(None, parse_changes(settings or []) | given, suited=suited)  # in this order, as `train` does
    scale = Scale(data_size=data_size, sample_rate=sample_rate, rounds=rounds, accountant=check_accountant(accountant))
    if recipe.size is not None and data_size is not None:
        raise SettingError("--size declares the number of examples: leave out --data-size")
    if flags["data"] is not None:
        if data_size is not None or sample_rate is not None:
            raise SettingError("--data brings the data size: give --batch-size, not --data-size or --sample-rate")
        filled, size = of_dataset(recipe)
        recipe = filled if rounds is None else replace(filled, epochs=recipe.epochs)
        scale = replace(scale, data_size=size)
    check(recipe)
    return recipe, scale


def numbers(quoted: Quote) -> dict[str, float]:
    """The public numbers of a planned run; its rounds also by the name that its method counts them by."""
    plan = quoted.plan
    batch = {"batch_size": plan.settings.batch_size} if quoted.sized else {}
    return {
        "noise_multiplier": plan.settings.noise_multiplier,
        "sample_rate": plan.settings.rate,
        **batch,
        "rounds": plan.rounds,
        plan.method.gate.proof.counts: plan.rounds,
    }


def shown(found: dict[str, float], mark: str | None = None) -> list[str]:
    """Numbers, one a line; the one that was looked for is marked."""
    return [f"{name:<18} {value:.6g}{'  <- found' if name == mark else ''}" for name, value in found.items()]


def in_words(guarantee: Guarantee) -> list[str]:
    """A guarantee for people."""
    from reticent.accounting.guarantee import round_up

    lines = [str(guarantee)]
    if guarantee.route:
        lines.append(f"charged     {guarantee.route.replace('_', ' ')}")
    both = [(name, value) for name, value in (("PLD", guarantee.pld), ("RDP", guarantee.rdp)) if value is not None]
    if both:
        order = f" (order {guarantee.order:g})" if guarantee.order else ""
        lines.append("accountants " + ", ".join(f"{name} {round_up(value, 4)}" for name, value in both) + order)
    lines += [f"assumes     {text}" for text in guarantee.assumptions]
    if claim := guarantee.as_claimed:
        lines.append(f"claimed     epsilon {claim['epsilon']:.4f}: {claim['text']}")
    return lines
