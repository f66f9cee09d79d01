"""Presets: what really differs from dataset to dataset (presets.toml), as a recipe takes it."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from reticent import catalogue
from reticent.accounting.losses.tradeoff import mu
from reticent.data import resolve
from reticent.errors import SettingError, UnknownName

SHARES = {"whiten_share": "whiten", "statistics_share": "statistics_noise"}
"""What share of the budget's mu goes to a release before training, and the setting of its noise."""
DROWNED = 1000.0
"""A release with so much noise tells nothing."""
_WITH_FEATURES = {*SHARES, "lr_share"}
"""What goes with a dataset's own features, and not with those that somebody named."""
_ITS_OWN = {"features", *_WITH_FEATURES}
"""What goes with a dataset's own network, and not with one that somebody named."""
_DELTA = 1e-5
_ANY_METHOD = {"data", "data_folder", "epsilon", "delta", "size", "adjacency", "validation", "subset", "curve", "seed"}
_ANY_METHOD |= {"max_physical_batch_size", "private_diagnostics", *SHARES.values()}
"""What says nothing about how to train, but for whom and for how much."""


@cache
def presets() -> dict[str, Any]:
    """The settings each dataset and method starts from (presets.toml)."""
    return tomllib.loads((files("reticent.experiments") / "presets.toml").read_text())


def preset_of(
    dataset: str,
    method: str,
    features: str | None,
    model: str | None,
    views: str | None,
    activation: str | None,
    epsilon: float | None = None,
) -> dict[str, Any]:
    """The settings for a dataset (or its features, or a network) and a method, the more particular ones last.

    >>> preset_of("mnist", "dpsgd", None, None, None, None)["features"]
    'deskew+scattering-strokes'
    """
    table, whole = presets(), presets()["data"].get(dataset, {})
    wants_images = (views, activation) != (None, None) and (features, model) == (None, None)
    network = "network" if wants_images and "network" in whole else None
    if epsilon is not None and (features, model, network) == (None, None, None):
        for larger in whole.get("larger", []):
            whole = whole | larger if epsilon >= larger["from_epsilon"] else whole
    own = _ITS_OWN if (model, network) != (None, None) else _WITH_FEATURES if features is not None else set()
    whole = _without(own, {**whole, method: _without(own, whole.get(method, {}))})
    named = (features, network, model)
    kinds = [whole, *(whole.get(name, {}) for name in named if name is not None)]
    layers = [table["default"], *kinds, dict(catalogue.find(method).preset)]
    layers += [kind.get(method, {}) for kind in kinds]
    return {
        name: value
        for layer in layers
        for name, value in layer.items()
        if not isinstance(value, dict | list) or name == "options"
    }


def suited_method(said: Mapping[str, Any]) -> str:
    """The method that a dataset's preset names, if nothing but its own options was said of how to train; else DP-SGD.

    >>> suited_method({"data": "location30", "epsilon": 3.0}), suited_method({"data": "location30", "lr": 0.1})
    ('class_means', 'dpsgd')
    """
    dataset = said.get("data")
    known = presets()["data"].get(resolve(dataset), {}) if isinstance(dataset, str) else {}
    found: str = known.get("method", "dpsgd")
    free = _ANY_METHOD | set(catalogue.options(found)) | {"options"}
    return found if {name for name, value in said.items() if value is not None} <= free else "dpsgd"


def record_of(dataset: str, features: str | None) -> str | None:
    """The row of results/best.toml that tells what a preset gets.

    >>> record_of("mnist", None), record_of("cifar10", "efficientnet-lite0"), record_of("digits", None)
    ('mnist', 'cifar10-imagenet', None)
    """
    whole = presets()["data"].get(dataset, {})
    found: str | None = (whole if features is None else whole.get(features, {})).get("record")
    return found


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
