"""The best recipe: what is done with a dataset where nothing is said of how to train, and the record that it holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reticent import catalogue
from reticent.data import resolve
from reticent.experiments.presets import SHARES, presets, releases_of

_LESS = {"size", "validation", "subset"}
"""What may leave fewer examples than a batch was chosen for."""
_FREE = {"data", "data_folder", "features", "epsilon", "delta", "adjacency", "curve", "seed", *_LESS, *SHARES.values()}
_FREE |= {"max_physical_batch_size", "private_diagnostics"}
"""What says nothing about how to train, but for whom and for how much."""


def best_settings(said: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a dataset's best recipe; none if anything but a budget, or options of its method, is said.

    >>> best_settings({"data": "location30", "epsilon": 3.0}), best_settings({"data": "location30", "lr": 0.1})
    ({'method': 'class_means'}, {})
    >>> best_settings({"data": "mnist", "epsilon": 1.0, "delta": 1e-5})
    {'lr_share': 0.6, 'whiten': 15.0}
    """
    table, epsilon = _table(said.get("data"), said.get("features")), said.get("epsilon")
    found = dict(table.get("best", {}))
    if not found or epsilon is None or not 0 < epsilon < float("inf"):
        return {}
    for larger in found.pop("larger", []):
        if epsilon >= larger["from_epsilon"] and not ("batch_size" in larger and _LESS & said.keys()):
            found |= larger
    found.pop("from_epsilon", None)
    found |= releases_of(found, epsilon, said.get("delta"))
    settings = {name: value for name, value in found.items() if name not in SHARES}
    free = _FREE | set(catalogue.options(settings.get("method", "dpsgd"))) - {"noise_multiplier", "max_grad_norm"}
    return settings if said.keys() <= free - settings.keys() else {}


def record_of(dataset: str, features: str | None) -> str | None:
    """The row of results/best.toml that tells what a dataset's best recipe gets.

    >>> record_of("mnist", None), record_of("cifar10", "efficientnet-lite0"), record_of("digits", None)
    ('mnist', 'cifar10-imagenet', None)
    """
    found: str | None = _table(dataset, features).get("record")
    return found


def _table(dataset: object, features: object) -> dict[str, Any]:
    whole = presets()["data"].get(resolve(dataset), {}) if isinstance(dataset, str) else {}
    found: dict[str, Any] = whole if features is None else whole.get(features, {})
    return found
