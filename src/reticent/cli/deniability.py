"""What `reticent plan` says of PD-SGD: what its test lets pass, and which widths keep a distance out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from reticent.accounting.claims.pd_sgd import largest_distance, pass_chance, width_for
from reticent.cli.account import shown
from reticent.cli.figure import deniability_figure
from reticent.errors import SettingError, require
from reticent.experiments.recipe import Recipe
from reticent.experiments.request import method_of
from reticent.outside import PlausibleDeniability

SAYS = "no differential privacy: plausible deniability only"
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The noise levels that are tried, as shares of the recipe's."""


def deniability(
    recipe: Recipe, distances: Sequence[float], dimension: int, figure: Path | None, *, as_json: bool
) -> str:
    """What the deniability test lets pass, with the noise and the width that a run would have."""
    gate = _gate(recipe)
    stars = {text: largest_distance(float(text), gate.std, gate.band) for text in ("0.05", "1e-05")}
    wanted = distances or [stars["0.05"] * share for share in (0.25, 0.5, 1.0, 2.0)]
    figures = {
        "pass_chance": {f"{d:g}": pass_chance(d, gate.std, gate.band) for d in wanted},
        "largest_distance": stars,
        "normalised": {text: (star / dimension) ** 0.5 for text, star in stars.items()},
    }
    if figure is not None:
        figure.write_text(deniability_figure(dimension))
    if as_json:
        answer = {"method": "pd_sgd", "sigma": gate.std, "gamma": gate.band, **figures, "says": SAYS}
        return json.dumps(answer | ({"figure": str(figure)} if figure is not None else {}))
    rows = (f"{name:<18} {', '.join(f'{d}: {value:.6g}' for d, value in row.items())}" for name, row in figures.items())
    return "\n".join([SAYS, *shown({"sigma": gate.std, "gamma": gate.band}), *rows])


def tuned(recipe: Recipe, distances: Sequence[float], chance: float, *, as_json: bool) -> str:
    """Widths that let a batch at the largest distance pass so rarely, noise by noise (appendix E, by theory)."""
    require(bool(distances) and min(distances) > 0, "--tune needs squared distances of batch gradients: --distance 0.2")
    require(0 < chance < 1, f"the chance to pass is {chance:g}: it must lie between 0 and 1")
    far, sigma = max(distances), _gate(recipe).std
    rows = [_width(sigma * factor, far, chance, distances) for factor in FACTORS]
    if as_json:
        return json.dumps(
            {
                "method": "pd_sgd",
                "distance": far,
                "chance": chance,
                "settings": [asdict(row) for row in rows],
                "says": SAYS,
            }
        )
    nearer = [f"{d:g}" for d in distances if d != far]
    lines = [f"{SAYS}; a batch at squared distance {far:g} from another passes for it with chance {chance:g}"]
    for row in rows:
        others = "".join(f", at {d}: {row.pass_chance[d]:.3g}" for d in nearer)
        lines.append(f"noise_std = {row.sigma:<8g} gamma = {row.gamma:<10.6g}{others}")
    return "\n".join(lines)


@dataclass(frozen=True)
class Width:
    """A noise, the width that keeps the distance out, and how often batches at other distances pass."""

    sigma: float
    gamma: float
    pass_chance: dict[str, float]


def _width(sigma: float, far: float, chance: float, distances: Sequence[float]) -> Width:
    gamma = width_for(far, chance, sigma)
    return Width(sigma, gamma, {f"{d:g}": pass_chance(d, sigma, gamma) for d in distances})


def _gate(recipe: Recipe) -> PlausibleDeniability:
    gate = method_of(recipe).gate
    if not isinstance(gate, PlausibleDeniability):
        raise SettingError("this ablation of pd_sgd has no deniability test to plan")
    return gate
