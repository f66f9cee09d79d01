"""`reticent account`: what a method costs from its public numbers, proved and as claimed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

if TYPE_CHECKING:
    from reticent.accounting.numbers import Numbers

ANSWER = ("epsilon", "delta", "status", "route", "order", "accountant", "rdp", "pld", "as_claimed")


def account(
    method: Annotated[str, Option(help="Which method: see `reticent methods`.")] = "dpsgd",
    sample_rate: Annotated[float | None, Option(help="Chance of an example to be drawn for a step.")] = None,
    noise_multiplier: Annotated[float | None, Option(help="Noise as a multiple of the clip norm.")] = None,
    steps: Annotated[int | None, Option(help="How many steps are released.", min=0)] = None,
    delta: Annotated[float, Option(help="Delta of the guarantee.")] = 1e-5,
    validation_rate: Annotated[float | None, Option(help="Chance of an example to be drawn for a test.")] = None,
    validation_noise: Annotated[float | None, Option(help="Noise of the test (sigma_v).")] = None,
    beta: Annotated[float, Option(help="Threshold of the test (DPSUR).")] = -1.0,
    attempts: Annotated[int | None, Option(help="Attempts, fixed before the run (route S).", min=0)] = None,
    accepted: Annotated[int | None, Option(help="Accepted updates, fixed before the run (route C).", min=0)] = None,
    route: Annotated[
        str | None, Option(help="S: every attempt. C: accepted updates, attempts hidden. F: naive.")
    ] = None,
    cap: Annotated[int | None, Option(help="Most hidden attempts for one update (route C).", min=1)] = None,
    max_rejections: Annotated[int | None, Option(help="Rejections before an update is forced.", min=0)] = None,
    data_size: Annotated[int | None, Option(help="Number of examples.", min=1)] = None,
    batch_size: Annotated[float | None, Option(help="Expected batch size.", min=1)] = None,
    epochs: Annotated[int | None, Option(help="Epochs.", min=1)] = None,
    epsilon: Annotated[float | None, Option(help="Budget of an adaptive method (DPIS, DPAGD).")] = None,
    phase: Annotated[float, Option(help="Share of epochs planned as plain DP-SGD (DPIS).")] = 0.8,
    kappa: Annotated[str | None, Option(help="Released norm sums as shares, one or one an epoch: 1,0.8,0.6.")] = None,
    size_noise: Annotated[float | None, Option(help="Noise on the number of examples, if it is private.")] = None,
    statistics_noise: Annotated[float | None, Option(help="Noise on the statistics that normalise features.")] = None,
    decay: Annotated[str | None, Option(help="Noise decay: time, exponential, step or polynomial.")] = None,
    orders: Annotated[str, Option(help="Orders of the paper's claim: paper (2..64) or code.")] = "paper",
    accountant: Annotated[str, Option(help="best, pld or rdp.")] = "best",
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Say what a method costs: the epsilon that is proved, and the one its paper claims."""
    from reticent.accounting.numbers import Numbers
    from reticent.accounting.quote import importance_plan, quote

    given = dict(locals())
    fields = {name: given[name] for name in Numbers.__dataclass_fields__ if name in given}
    numbers = Numbers(**(fields | {"kappa": listed(kappa)}))
    if decay is not None:
        numbers = replace(numbers, shares=shares(decay, numbers))
    guarantee = quote(method, numbers.completed())
    data = guarantee.to_json()
    answer = {name: data[name] for name in ANSWER} | {name: data[name] for name in ("why", "adjacency", "assumptions")}
    if method == "dpis":
        plan, kappas = importance_plan(method, numbers)
        answer["noise"] = plan.schedule(kappas)
    print(json.dumps(answer) if as_json else _in_words(str(guarantee), answer))


def listed(text: str | None) -> tuple[float, ...]:
    """The numbers of a comma list."""
    from reticent.errors import SettingError

    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise SettingError(f"{text!r} is not a list of numbers: write them like 1,0.8,0.6") from None


def shares(decay: str, numbers: Numbers) -> tuple[float, ...]:
    """The noise of every epoch as a share of the first's; the schedules live where training uses them."""
    from reticent import outside
    from reticent.errors import UnknownName

    kinds = {
        "time": outside.TimeDecay,
        "exponential": outside.ExponentialDecay,
        "step": outside.StepDecay,
        "polynomial": outside.PolynomialDecay,
    }
    if decay not in kinds:
        raise UnknownName("decay", decay, kinds)
    (epochs,) = numbers.need("noise_decay", "epochs")
    return tuple(kinds[decay]().factor(epoch) for epoch in range(epochs))


def _in_words(sentence: str, answer: dict[str, Any]) -> str:
    lines = [sentence]
    if answer["route"]:
        lines.append(f"route       {answer['route']}")
    both = [f"{name.upper()} {answer[name]:.4f}" for name in ("pld", "rdp") if answer[name] is not None]
    if both:
        lines.append(f"accountants {', '.join(both)}" + (f" (order {answer['order']:g})" if answer["order"] else ""))
    lines += [f"assumes     {text}" for text in answer["assumptions"]]
    if "noise" in answer:
        lines.append("noise       " + ", ".join(f"{noise:.4f}" for noise in answer["noise"]))
    if claim := answer["as_claimed"]:
        lines.append(f"claimed     epsilon {claim['epsilon']:.4f}: {claim['text']}")
    return "\n".join(lines)
