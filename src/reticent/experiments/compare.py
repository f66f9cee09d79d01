"""Compare methods at equal proved epsilon: which runs that takes, and what comes of them."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from reticent import catalogue, data
from reticent.errors import SettingError
from reticent.experiments.job import Job
from reticent.experiments.quoting import of_dataset
from reticent.experiments.recipe import Recipe, check, read_recipe
from reticent.experiments.sweep import Watcher, failures, sweep
from reticent.experiments.training import examples
from reticent.files import replace_file
from reticent.reading import read_toml
from reticent.report import Picking, Row, picking, read, summarise, to_csv, write_page
from reticent.report.summary import BASELINE
from reticent.results import RESULTS, Kind, Result

Settings = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Methods (or variants of them) times budgets times seeds, on one dataset and network.

    DP-SGD and training without privacy are always among them. A variant that computes `cost` times as many gradients as
    DP-SGD for the same batch size has beside it a DP-SGD that may compute as many.

    >>> plan = Comparison(settings={"data": "digits"}, variants={"auto_s": {}}, epsilons=(3.0,), seeds=(0,))
    >>> [job.name for job in plan.jobs()]
    ['plain-seed0', 'dpsgd-eps3-seed0', 'auto_s-eps3-seed0']
    """

    settings: Settings
    variants: Mapping[str, Settings]
    """By label; a variant's settings win over the shared ones, and its method is its label if it names none."""
    epsilons: tuple[float, ...]
    seeds: tuple[int, ...]
    costs: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.epsilons or not self.seeds:
            raise SettingError("a comparison needs at least one epsilon and one seed")
        for epsilon in self.epsilons:
            if not 0 < epsilon < math.inf:
                raise SettingError(f"an epsilon of {epsilon:g} cannot be compared at: it must be above 0 and finite")
        for label, cost in self.costs.items():
            if label not in self.variants:
                raise SettingError(f"a gradient cost is given for {label!r}, which is not among the methods compared")
            if not cost > 0:
                raise SettingError(f"the gradient cost of {label} is {cost:g}: it must be above 0")
        for name in ("epsilon", "seed"):
            if name in self.settings:
                raise SettingError(f"a comparison has several: give {name}s, not {name}")
        for label, own in self.variants.items():
            _check_variant(label, own)

    def jobs(self) -> list[Job]:
        """Every run, the first seed of all of them first; what promises no epsilon is run without a budget, once."""
        found = []
        recipes, larger = dict(self._recipes()), self._larger()
        for recipe in recipes.values():
            check(recipe.filled())
        for seed in self.seeds:
            # Optimizer and step are for the private ones: plain training chooses its own.
            plain = dataclasses.replace(self._recipe({"method": BASELINE}), optimizer=None)
            found.append(_job("plain", plain, None, seed, "plain"))
            found += [
                _job(label, one, None, seed) for label, one in recipes.items() if catalogue.promises_nothing(one.method)
            ]
            for epsilon in self.epsilons:
                bounded = {label: one for label, one in recipes.items() if not catalogue.promises_nothing(one.method)}
                found += [_job(label, one, epsilon, seed, cost=larger.get(label)) for label, one in bounded.items()]
        return found

    def _recipes(self) -> Iterator[tuple[str, Recipe]]:
        """Every private recipe with its label, baselines first."""
        baseline = self._recipe({"method": BASELINE} | self.variants.get(BASELINE, {}))
        yield BASELINE, baseline
        for label in self._larger():
            yield label, baseline
        for label, own in self.variants.items():
            if label != BASELINE:
                yield label, self._recipe({"method": label} | own)

    def _larger(self) -> dict[str, float]:
        """The labels of a DP-SGD that may compute as many gradients as others do, and how many that is."""
        costs = sorted({self._cost(label) for label in self.variants} - {1.0})
        return {f"{BASELINE}-{cost:g}x-gradients": cost for cost in costs}

    def _recipe(self, own: Settings) -> Recipe:
        """The recipe of a variant; a clip norm that all share is not for methods that have none."""
        known = catalogue.options(own["method"])
        unfit = {name for name in ("max_grad_norm", "noise_multiplier") if name not in known}
        shared = {name: value for name, value in self.settings.items() if name not in unfit}
        return read_recipe(None, shared | own)

    def _cost(self, label: str) -> float:
        """Gradients computed for each one DP-SGD would: as said here, or by the method's own option."""
        recipe = self._recipe({"method": label} | self.variants[label]).filled()
        option = catalogue.find(recipe.method).gradient_cost
        said = recipe.options.get(option, catalogue.options(recipe.method).get(option, 1.0))
        return float(self.costs.get(label, said))


def _check_variant(label: str, own: Settings) -> None:
    if not re.fullmatch(r"[\w.+-]+", label):
        raise SettingError(f"{label!r} cannot name a variant: runs are folders, so use letters, digits and -_.+")
    if label == BASELINE and own.get("method", BASELINE) != BASELINE:
        raise SettingError(f"{BASELINE} is what the others are held against: give {own['method']} another label")
    for name in sorted({"epsilon", "delta", "seed"} & own.keys()):
        raise SettingError(f"{label} has {name} of its own: methods are compared at the same budgets and seeds")


def _job(
    label: str,
    recipe: Recipe,
    epsilon: float | None,
    seed: int,
    kind: Kind = "private",
    cost: float | None = None,
) -> Job:
    budget = "" if epsilon is None else f"-eps{epsilon:g}"
    whole = dataclasses.replace(recipe, epsilon=epsilon, seed=seed)
    whole = whole if cost is None else _larger(whole, cost)
    return Job(name=f"{label}{budget}-seed{seed}", label=label, recipe=whole, kind=kind)


def _larger(recipe: Recipe, cost: float) -> Recipe:
    """The recipe with batches `cost` times as large and as many rounds."""
    filled = recipe.filled()
    if filled.batch_size is None or filled.epochs is None:
        filled, _ = of_dataset(recipe)
    batch_size, epochs = filled.batch_size or 1.0, filled.epochs or 1.0
    return dataclasses.replace(recipe, batch_size=batch_size * cost, epochs=epochs * cost)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What came of a comparison, and where it is written."""

    runs: tuple[Result, ...]
    summary: tuple[Row, ...]
    out: Path

    @property
    def failed(self) -> dict[str, str]:
        """Why each of the runs failed that did."""
        return failures(self.runs)

    @property
    def picking(self) -> Picking | None:
        """What picking the best of the runs costs; None where there is nothing to pick from."""
        return picking(self.runs)

    @property
    def results(self) -> Path:
        """The file with a line for each run."""
        return self.out / RESULTS

    @property
    def csv(self) -> Path:
        """The file with the summary."""
        return self.out / "summary.csv"

    @property
    def page(self) -> Path:
        """The page that shows it all."""
        return self.out / "report.html"

    def to_json(self) -> dict[str, object]:
        """The figures and the places as plain data."""
        return {
            "runs": len(self.runs),
            "failed": self.failed,
            "summary": [dataclasses.asdict(row) for row in self.summary],
            "picking": None if self.picking is None else self.picking.to_json(),
            "results": str(self.results),
            "csv": str(self.csv),
            "page": str(self.page),
            "out": str(self.out),
        }


def compare(
    comparison: Comparison, out: Path, *, processes: int | None, watcher: Watcher, cluster: str | None = None
) -> Compared:
    """Run a comparison to its end and write results.jsonl, summary.csv and report.html; it resumes by itself."""
    _check_data(comparison)
    runs = sweep(comparison.jobs(), out, processes=processes, watcher=watcher, cluster=cluster)
    compared = Compared(runs=tuple(runs), summary=tuple(summarise(read(out).runs)), out=out)
    replace_file(compared.csv, to_csv(compared.summary).encode())
    write_page(out)
    return compared


def _check_data(comparison: Comparison) -> None:
    """What is wrong with one's own data is told once and at once, not by every run."""
    recipe = read_recipe(None, comparison.settings).filled()
    if data.is_own(recipe.data) and examples(recipe).numeric:
        raise SettingError(
            f"{recipe.data} has a number to predict, and methods are compared by accuracy: `reticent train` trains and "
            "measures it, one method at a time"
        )


def read_comparison(path: Path | None, changes: Settings) -> Comparison:
    """A comparison from a TOML file and the command line, which wins.

    `methods`, `epsilons`, `seeds` (how many) and `gradient_costs` say what to compare, `[variant.LABEL]` tables hold
    variants, `METHOD.setting` is a setting of one method, and everything else is shared.

    >>> read_comparison(None, {"data": "digits", "methods": ["auto_s"], "epsilons": [1], "auto_s.lr": "2"}).variants
    {'auto_s': {'lr': '2'}}
    """
    values: Settings = _toml(path) | {name: value for name, value in changes.items() if value is not None}
    variants: dict[str, Settings] = {label: {} for label in _list_of((str,), "methods", values, [])}
    variants |= _table("variant", values)
    own = {name: values.pop(name) for name in list(values) if "." in name}
    for name, value in own.items():
        label, _, setting = name.partition(".")
        if label == BASELINE:
            variants.setdefault(BASELINE, {})
        variants[_matching(label, variants)][setting] = value
    seeds = values.pop("seeds", 1)
    if isinstance(seeds, bool) or not isinstance(seeds, int):
        raise SettingError(f"seeds must say how many there are, not {seeds!r}")
    return Comparison(
        epsilons=tuple(float(epsilon) for epsilon in _list_of((int, float), "epsilons", values, [1.0, 3.0])),
        seeds=tuple(range(seeds)),
        costs=_table("gradient_costs", values),
        variants=variants,
        settings=values,
    )


def _list_of(kinds: tuple[type[T], ...], name: str, values: Settings, default: list[T]) -> list[T]:
    found = values.pop(name, default)
    if not isinstance(found, list) or not all(isinstance(part, kinds) for part in found):
        raise SettingError(f"{name} must be a list such as {default or ['dpsur', 'dpis']}, not {found!r}")
    return found


def _table(name: str, values: Settings) -> Settings:
    found = values.pop(name, {})
    if not isinstance(found, dict):
        raise SettingError(f"{name} must be a table, not {found!r}")
    return found


def _toml(path: Path | None) -> Settings:
    return {} if path is None else read_toml(path, error=SettingError)


def _matching(label: str, variants: Mapping[str, Settings]) -> str:
    for known in variants:
        if known.replace("-", "_") == label.replace("-", "_"):
            return known
    raise SettingError(f"a setting is given for {label!r}, which is not among the methods compared: {list(variants)}")
