"""Presets: what really differs from dataset to dataset (presets.toml), as a recipe takes it."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from reticent import catalogue
from reticent.accounting.losses.tradeoff import mu
from reticent.errors import SettingError, UnknownName

SHARES = {"whiten_share": "whiten", "statistics_share": "statistics_noise"}
"""What share of the budget's mu goes to a release before training, and the setting of its noise."""
DROWNED = 1000.0
"""A release with so much noise tells nothing."""
_ITS_OWN = {"features", *SHARES}
"""What goes with a dataset's own network, and not with one that somebody named."""
_DELTA = 1e-5


@cache
def presets() -> dict[str, Any]:
    """The settings each dataset and method starts from (presets.toml)."""
    return tomllib.loads((files("reticent.experiments") / "presets.toml").read_text())


def preset_of(
    dataset: str, method: str, features: str | None, model: str | None, views: str | None, activation: str | None
) -> dict[str, Any]:
    """The settings for a dataset (or its features, or a network) and a method, the more particular ones last.

    >>> preset_of("mnist", "dpsgd", None, None, None, None)["features"]
    'deskew+scattering-strokes'
    """
    table, whole = presets(), presets()["data"].get(dataset, {})
    wants_images = (views, activation) != (None, None) and (features, model) == (None, None)
    network = "network" if wants_images and "network" in whole else None
    own = _ITS_OWN if (model, network) != (None, None) else set(SHARES) if features is not None else set()
    whole = _without(own, {**whole, method: _without(own, whole.get(method, {}))})
    named = (features, network, model)
    kinds = [whole, *(whole.get(name, {}) for name in named if name is not None)]
    layers = [table["default"], *kinds, dict(catalogue.find(method).preset)]
    layers += [kind.get(method, {}) for kind in kinds]
    return {
        name: value
        for layer in layers
        for name, value in layer.items()
        if not isinstance(value, dict) or name == "options"
    }


def _without(names: Collection[str], settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in names}


def noise_of(share: float, epsilon: float, delta: float | None) -> float:
    """The noise multiplier of a release that takes a share of the budget's mu (Gaussian DP); its digits mean nothing.

    >>> noise_of(0.25, 3.0, 1e-5)
    5.6
    """
    return float(f"{1 / (share * mu(epsilon, _DELTA if delta is None else delta)):.2g}")


def releases_of(preset: Mapping[str, Any], epsilon: float, delta: float | None) -> dict[str, float]:
    """The noise of what a preset releases before training, by setting; none that a budget so small would drown.

    >>> releases_of({"whiten_share": 0.25}, 3.0, 1e-5), releases_of({"whiten_share": 0.25}, 1e-3, 1e-5)
    ({'whiten': 5.6}, {})
    """
    found = {setting: noise_of(preset[name], epsilon, delta) for name, setting in SHARES.items() if name in preset}
    return {setting: noise for setting, noise in found.items() if noise < DROWNED}


def features_by(public: str | None, features: str | None) -> str | None:
    """The features that public data of a name gives, or those that were asked for.

    >>> features_by("imagenet", None), features_by(None, "scattering")
    ('efficientnet-lite0', 'scattering')
    """
    if public is None:
        return features
    known = presets()["public"]
    if public not in known:
        raise UnknownName("public data", public, sorted(known))
    if features is not None:
        raise SettingError(f"--public {public} chooses the features: leave out --features, or --public")
    return str(known[public]["features"])
