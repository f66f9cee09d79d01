"""Recipe: a whole run by names and numbers, from the dataset to the seed."""

from __future__ import annotations

import dataclasses
import math
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from reticent import catalogue, data, models
from reticent.accounting.adjacency import adjacency_of
from reticent.data import Declaration
from reticent.data.features.extractors import SCALED
from reticent.errors import SettingError, UnknownName
from reticent.experiments.best import best_settings, record_of
from reticent.experiments.factories import find_factory, is_factory
from reticent.experiments.presets import SHARES, preset_of, releases_of
from reticent.inside.views import Views
from reticent.reading import read_toml

_ABOVE_ZERO = (
    "epsilon",
    "claimed_epsilon",
    "epochs",
    "batch_size",
    "lr",
    "lr_share",
    "centre",
    "whiten",
    "statistics_noise",
    "fill_noise",
    "subset",
    "curve",
    "max_physical_batch_size",
)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What to train, on what, how, and for how much; what is None is filled in: names by the preset, numbers by rule.

    >>> Recipe(data="digits", epsilon=3.0).filled().model
    'linear'
    """

    data: str = "digits"
    data_folder: str | None = None
    schema: str | None = None
    """A file that declares what the user's own data may hold; `accept_schema` takes the proposed one instead."""
    accept_schema: bool | None = None
    label: str | None = None
    test_data: str | None = None
    """Where `data` is a path: the column to predict, for a proposed schema, and a file of the same form to test on."""
    features: str | None = None
    model: str | None = None
    activation: str | None = None
    method: str = "dpsgd"
    options: dict[str, Any] = field(default_factory=dict)
    epsilon: float | None = None
    claimed_epsilon: float | None = None
    """The run is as long as its paper's own rule says that this is spent; no guarantee, and it overrides `epochs`."""
    delta: float | None = None
    size: int | None = None
    """The declared number of private examples: all public numbers follow from it, however many there really are."""
    adjacency: str | None = None
    """zero-out, add-or-remove or replace; if not said, the second with a declared size, and the first without."""
    groups: str | None = None
    """The column, or file beside arrays, that says whose each row is: numbers and guarantee are by person then."""
    most_rows: int | None = None
    """So many rows of a person at most take part in a round; all of them if not said."""
    views: str | None = None
    """Views of each image that are averaged before the bound: mirror, shift=4, mirror+shift=4+count=8."""
    epochs: float | None = None
    batch_size: float | None = None
    optimizer: str | None = None
    """sgd or adam; the method's own if not said."""
    lr: float | None = None
    lr_share: float | None = None
    """Steps are so many times as long as the rule's, where `lr` is not said."""
    momentum: float | None = None
    lr_schedule: str | None = None
    average_last: float | None = None
    noise_multiplier: float | None = None
    max_grad_norm: float | None = None
    centre: float | None = None
    """Noise multiplier of a mean that is released before training and taken away from what the network sees."""
    whiten: float | None = None
    """Noise multiplier of second moments that are released before training: what is long in all rows is shrunk."""
    statistics_noise: float | None = None
    """Noise multiplier of the channels' means and squares, released before training to normalise by (HF).

    Of hashed words it is that of how many texts have each: frequent ones count less."""
    fill_noise: float | None = None
    """Noise multiplier of the means that stand for missing cells where the schema says `fill = "noisy"`."""
    holdout: int | None = None
    validation: int | None = None
    """So many training examples (or persons) are set aside and judge the model instead of the test, for tuning."""
    subset: int | None = None
    """So many of the training examples (or persons) are learned from, the same ones every time; the rest is unused."""
    curve: int | None = None
    """The model is judged on the test examples so many times along the way; nothing is chosen by it."""
    max_physical_batch_size: int | None = None
    private_diagnostics: bool = False
    seed: int | None = None

    def filled(self) -> Recipe:
        """The same recipe with the preset of its dataset and method where nothing was said; numbers may stay open."""
        said = (self.features, self.model, self.views, self.activation)
        preset = preset_of(data.resolve(self.data), self.method, *said)
        if self.epsilon is not None and 0 < self.epsilon < math.inf and not catalogue.promises_nothing(self.method):
            preset |= releases_of(preset, self.epsilon, self.delta)
        given = {name for name, value in self.to_json().items() if value is not None}
        names = {f.name for f in dataclasses.fields(Recipe)} - given
        if "max_grad_norm" not in catalogue.options(self.method):
            names.discard("max_grad_norm")
        filled = dataclasses.replace(self, **{name: value for name, value in preset.items() if name in names})
        # 0, to have none although the preset has
        none: dict[str, Any] = {name: None for name in SHARES.values() if getattr(filled, name) == 0}
        return dataclasses.replace(filled, **none, options=preset.get("options", {}) | self.options)

    def declared(self) -> Declaration:
        """What is said of the user's own files."""
        accept = bool(self.accept_schema)
        return Declaration(self.schema, self.label, self.test_data, accept=accept, groups=self.groups)

    def to_json(self) -> dict[str, Any]:
        """The recipe as plain data."""
        return dataclasses.asdict(self)


def recorded(recipe: Recipe) -> str | None:
    """The row of results/best.toml whose recipe this is, at whatever epsilon; None if it is of somebody's own.

    >>> recorded(read_recipe(None, {"data": "mnist", "epsilon": 3.0}, suited=True))
    'mnist'
    >>> recorded(Recipe(data="mnist", epsilon=3.0))
    """
    said = {name: getattr(recipe, name) for name in ("data", "data_folder", "epsilon", "delta", "seed")}
    filled = recipe.filled()
    for features in (None, recipe.features):
        row = record_of(data.resolve(recipe.data), features)
        if row is not None and read_recipe(None, said | {"features": features}, suited=True).filled() == filled:
            return row
    return None


_SETTINGS = [f.name for f in dataclasses.fields(Recipe) if f.name != "options"]


def read_recipe(path: Path | None, changes: dict[str, Any], *, suited: bool = False) -> Recipe:
    """A recipe from a TOML file, with some settings changed; names that are no setting go to the method.

    `suited`: if nothing is said of how to train, it is the best recipe for the dataset (presets.toml).

    >>> read_recipe(None, {"data": "digits", "lr": "2"}).lr
    2.0
    """
    values = {} if path is None else read_toml(path, error=SettingError)
    values |= {name: value for name, value in changes.items() if value is not None}
    kinds = _kinds()
    known = {name: _typed(name, value, kinds[name]) for name, value in values.items() if name in kinds}
    extra = {name: literal(value) for name, value in values.items() if name not in kinds}
    if suited:
        known |= best_settings(known | extra)
    if extra:
        known["options"] = {**known.get("options", {}), **extra}
    return Recipe(**known)


@cache
def _kinds() -> dict[str, Any]:
    return get_type_hints(Recipe)


def _typed(name: str, value: Any, kind: Any) -> Any:
    parts = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    wanted: list[type] = [get_origin(part) or part for part in parts if part is not type(None)]
    value = literal(value) if isinstance(value, str) and str not in wanted else value
    if float in wanted and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, tuple(wanted)):
        names = ("table" if part is dict else part.__name__ for part in wanted)
        raise SettingError(f"{name} must be a {' or '.join(names)}, not {value!r}")
    return value


def literal(text: Any) -> Any:
    """A setting as written on the command line: a TOML value, or else the text itself.

    >>> literal("3"), literal("false"), literal("False"), literal("tanh")
    (3, False, False, 'tanh')
    """
    if not isinstance(text, str):
        return text
    if text in ("True", "False"):  # as Python writes them
        return text == "True"
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def parse_changes(settings: list[str]) -> dict[str, Any]:
    """`key=value` settings of the command line as a dict.

    >>> parse_changes(["lr=2", "model=cnn"])
    {'lr': '2', 'model': 'cnn'}
    """
    changes = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise SettingError(f"--set takes key=value, not {setting!r}")
        changes[name.strip().replace("-", "_")] = value.strip()
    return changes


def check(recipe: Recipe) -> None:
    """Refuse unknown names, options of the wrong kind, and features normalised twice, before any time is spent."""
    data.resolve(recipe.data)
    own = recipe.model if recipe.model is not None and is_factory(recipe.model) else None
    if own is not None:
        find_factory(own)
    for kind, name, known in (
        ("model", None if own else recipe.model, models.names()),
        ("method", recipe.method, catalogue.names()),
    ):
        if name is not None and name not in known:
            raise UnknownName(kind, name, known)
    for name in (*_ABOVE_ZERO, "most_rows"):
        value = getattr(recipe, name)
        if value is not None and not 0 < value < math.inf:
            raise SettingError(f"{name} is {value:g}: it must be above 0 and finite")
    if recipe.seed is not None and not 0 <= recipe.seed < 2**63:
        raise SettingError(f"seed is {recipe.seed}: it must be 0 or more, and below 2**63")
    known_options = catalogue.options(recipe.method)
    for name in recipe.options:
        if name not in known_options:
            raise UnknownName("setting", name, [*_SETTINGS, *known_options], more=f"reticent settings {recipe.method}")
    for name, default in known_options.items():
        _check_option(name, recipe.options.get(name, default), default)
    if recipe.max_grad_norm is not None and "max_grad_norm" not in known_options:
        raise SettingError(f"{recipe.method} has no clip norm: leave out max_grad_norm")
    adjacency_of(recipe.size, recipe.adjacency)
    if recipe.size is not None and (recipe.holdout, recipe.validation, recipe.subset) != (None, None, None):
        raise SettingError(
            "size declares the number of examples, but who is set aside depends on how many there really are: "
            "leave out holdout, validation and subset, or size"
        )
    if recipe.options.get("judge_on_test") and (recipe.holdout is not None or recipe.validation is not None):
        raise SettingError("judge_on_test lets the test examples judge: leave out holdout and validation")
    _check_groups(recipe)
    if recipe.views is not None:
        Views.of(recipe.views)
        if recipe.features is not None:
            raise SettingError("views are made of images, and features were taken of them before: leave out either")
    if recipe.claimed_epsilon is not None and (recipe.epsilon is not None or recipe.noise_multiplier is None):
        raise SettingError("claimed_epsilon says how long a run with a noise_multiplier is: give that, and no epsilon")
    if recipe.curve is not None and catalogue.find(recipe.method).kind == "defence":
        raise SettingError(f"{recipe.method} is not trained round by round: leave out curve")
    features = recipe.features or ""
    if recipe.statistics_noise is not None and any(name in features for name in SCALED):
        raise SettingError(f"{features} is normalised already: take scattering with statistics_noise, or set centre")
    if recipe.statistics_noise is not None and "|" in features:
        raise SettingError("features side by side are scaled already: leave out statistics_noise, or set centre")


def _check_groups(recipe: Recipe) -> None:
    """Refuse what would not be by person."""
    if recipe.groups is None:
        if recipe.most_rows is not None:
            raise SettingError("most_rows is the most rows a person takes part with: say with groups whose each row is")
        return
    if catalogue.find(recipe.method).kind == "defence":
        raise SettingError(f"{recipe.method} promises nothing, by person or by row: leave out groups")
    if recipe.holdout is not None:
        raise SettingError("a public hold-out is taken row by row, and groups promises for whole persons: drop either")


def _check_option(name: str, value: Any, default: Any) -> None:
    """A word where a number or a yes or no is wanted would count as a yes."""
    if default is None or value is None:
        return
    kinds: dict[type, tuple[type, ...]] = {int: (int, float), float: (int, float)}
    wanted = {bool: "true or false", int: "a number", float: "a number", str: "a name"}
    kind = type(default)
    if not isinstance(value, kinds.get(kind, (kind,))) or isinstance(value, bool) != (kind is bool):
        raise SettingError(f"{name} must be {wanted.get(kind, kind.__name__)}, as {default!r} is; got {value!r}")
