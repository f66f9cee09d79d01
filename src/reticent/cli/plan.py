"""`reticent plan`: noise, rounds and batch for a budget; for PD-SGD, what its test lets pass."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from typer import Option


def plan(
    method: Annotated[str, Option(help="Which method: see `reticent methods`.")] = "dpsgd",
    epsilon: Annotated[float | None, Option(help="Budget.")] = None,
    delta: Annotated[float, Option(help="Delta of the budget.")] = 1e-5,
    sample_rate: Annotated[float | None, Option(help="Chance of an example to be drawn for a step.")] = None,
    data_size: Annotated[int | None, Option(help="Number of examples.", min=1)] = None,
    batch_size: Annotated[float | None, Option(help="Expected batch size.", min=1)] = None,
    noise_multiplier: Annotated[float | None, Option(help="Noise as a multiple of the clip norm.")] = None,
    steps: Annotated[int | None, Option(help="Steps.", min=1)] = None,
    epochs: Annotated[int | None, Option(help="Epochs, instead of steps.", min=1)] = None,
    attempts: Annotated[int | None, Option(help="Attempts (DPSUR route S, SA-DPSGD).", min=1)] = None,
    accepted: Annotated[int | None, Option(help="Accepted updates (route C).", min=1)] = None,
    route: Annotated[str | None, Option(help="S, C or F: see `reticent account`.")] = None,
    cap: Annotated[int | None, Option(help="Most hidden attempts for one update (route C).", min=1)] = None,
    validation_rate: Annotated[float | None, Option(help="Chance of an example to be drawn for a test.")] = None,
    validation_noise: Annotated[float | None, Option(help="Noise of the test (sigma_v).")] = None,
    beta: Annotated[float, Option(help="Threshold of the test (DPSUR).")] = -1.0,
    max_rejections: Annotated[int | None, Option(help="Rejections before an update is forced.", min=0)] = None,
    phase: Annotated[float, Option(help="Share of epochs planned as plain DP-SGD (DPIS).")] = 0.8,
    kappa: Annotated[str | None, Option(help="Expected norm sums as shares, one or one an epoch.")] = None,
    size_noise: Annotated[float | None, Option(help="Noise on the number of examples, if it is private.")] = None,
    statistics_noise: Annotated[float | None, Option(help="Noise on the statistics that normalise features.")] = None,
    decay: Annotated[str | None, Option(help="Noise decay: time, exponential, step or polynomial.")] = None,
    accountant: Annotated[str, Option(help="best, pld or rdp.")] = "best",
    sigma: Annotated[float, Option(help="Standard deviation of PD-SGD's noise.")] = 0.1,
    gamma: Annotated[float, Option(help="Width of PD-SGD's test.")] = 4.0,
    distance: Annotated[str | None, Option(help="Squared distances of batch gradients (PD-SGD): 0.1,0.5.")] = None,
    dimension: Annotated[int, Option(help="Number of parameters, to normalise distances (PD-SGD).")] = 7680,
    figure: Annotated[Path | None, Option(help="Write PD-SGD's Figure 1 as an SVG file.")] = None,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Find the noise, the rounds or the batch that a budget affords; for PD-SGD, what its test lets pass."""
    from reticent.accounting.numbers import Numbers
    from reticent.cli.account import listed, shares

    given = dict(locals())
    if method == "pd_sgd":
        answer = _deniability(sigma, gamma, listed(distance), dimension, figure)
    else:
        fields = {name: given[name] for name in Numbers.__dataclass_fields__ if name in given}
        numbers = Numbers(**(fields | {"kappa": listed(kappa)}))
        if decay is not None:
            numbers = replace(numbers, shares=shares(decay, numbers))
        answer = _importance(numbers) if method == "dpis" else _solved(method, numbers)
    print(json.dumps(answer) if as_json else "\n".join(_lines(answer)))


def _solved(method: str, numbers: Any) -> dict[str, Any]:
    from reticent.accounting.solve import solve

    name, found, guarantee = solve(method, numbers)
    known = {
        field: getattr(found, field)
        for field in ("noise_multiplier", "sample_rate", "steps", "attempts", "accepted")
        if getattr(found, field) is not None
    }
    if name == "sample_rate" and found.data_size and found.sample_rate:
        known["batch_size"] = int(found.sample_rate * found.data_size)
    return {"method": method, "found": name, **known, "guarantee": guarantee.to_json(), "says": str(guarantee)}


def _importance(numbers: Any) -> dict[str, Any]:
    from reticent.accounting.quote import importance_plan, quote

    made, kappas = importance_plan("dpis", numbers)
    guarantee = quote("dpis", numbers)
    return {
        "method": "dpis",
        "found": "noise_multiplier",
        "order": made.order,
        "planned_noise": made.planned_noise,
        "noise_multiplier": made.schedule(kappas),
        "guarantee": guarantee.to_json(),
        "says": str(guarantee),
    }


def _deniability(
    sigma: float, gamma: float, distances: tuple[float, ...], dimension: int, figure: Path | None
) -> dict[str, Any]:
    from reticent.accounting.claims.pd_sgd import largest_distance, pass_chance

    chances = {0.05: "0.05", 1e-5: "1e-05"}
    stars = {text: largest_distance(chance, sigma, gamma) for chance, text in chances.items()}
    wanted = distances or tuple(stars["0.05"] * share for share in (0.25, 0.5, 1.0, 2.0))
    answer = {
        "method": "pd_sgd",
        "sigma": sigma,
        "gamma": gamma,
        "pass_chance": {f"{d:g}": pass_chance(d, sigma, gamma) for d in wanted},
        "largest_distance": stars,
        "normalised": {text: (star / dimension) ** 0.5 for text, star in stars.items()},
        "says": "no differential privacy: plausible deniability only",
    }
    if figure is not None:
        from reticent.cli.figure import deniability_figure

        figure.write_text(deniability_figure(dimension))
        answer["figure"] = str(figure)
    return answer


def _lines(answer: dict[str, Any]) -> list[str]:
    lines = [str(answer["says"])]
    for name, value in answer.items():
        if name in ("guarantee", "says", "method", "found"):
            continue
        mark = "  <- found" if name == answer.get("found") else ""
        lines.append(f"{name:<18} {_shown(value)}{mark}")
    return lines


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_shown(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(_shown(inner) for inner in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
