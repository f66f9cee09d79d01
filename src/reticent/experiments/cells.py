"""Cells of a table: the rows of an experiment file, column by column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from reticent import catalogue
from reticent.errors import SettingError
from reticent.experiments.measures import check_measure
from reticent.experiments.recipe import Recipe, read_recipe
from reticent.results import Kind

Settings = dict[str, Any]
T = TypeVar("T")
ABOUT_A_ROW = (
    "name",
    "columns",
    "printed",
    "minutes",
    "ours",
    "as_claimed",
    "attack",
    "stand_in",
    "kind",
    "beside",
    "measures",
)
"""The keys of a row that are not settings of its runs."""


@dataclass(frozen=True, kw_only=True)
class TableCell:
    """One run of a table: how it is made here, and what the paper printed of it."""

    row: str
    column: str
    recipe: Recipe
    """At the epsilon that heads the column, which we prove (or without one, where the paper names none)."""
    as_claimed: Recipe | None = None
    """With the noise and the length that the paper used, whose epsilon it claimed; None where it does not say."""
    printed: Mapping[str, float] = field(default_factory=dict)
    """What the paper prints, by measure; accuracy is in percent."""
    minutes: float | None = None
    """About how long a run takes on one core, its attack included."""
    ours: tuple[str, ...] = ()
    """Settings that the paper does not state: these are our choice."""
    kind: Kind = "private"
    attack: Mapping[str, object] | None = None
    """How its runs are attacked, in the words of `attack_run`; None: they are not."""
    stand_in: str | None = None
    """What data or network stand in for the paper's, and why; None where they are the paper's."""
    measures: tuple[str, ...] = ("accuracy",)
    """What is told of its runs where the paper prints no number, as under a plot."""
    beside: str | None = None
    """The row whose printed numbers these are: they count there, once."""

    @property
    def name(self) -> str:
        """What `--cells` and the folder of a run call it."""
        return f"{self.row}-{self.column}" if self.column else self.row


def cells_of(rows: list[Settings], shared: Settings) -> list[TableCell]:
    """The cells of all rows of a table, with the settings that all of them share.

    >>> rows = [{"name": "a", "epsilon": [1, 3], "printed": [90.5, 95]}]
    >>> [(cell.name, cell.printed) for cell in cells_of(rows, {"data": "digits"})]
    [('a-eps1', {'accuracy': 90.5}), ('a-eps3', {'accuracy': 95.0})]
    """
    printed = {row["name"]: row.get("printed") for row in rows}
    full = [{"printed": printed[row["beside"]] if "beside" in row else None} | _fit(shared, row) | row for row in rows]
    return [cell for row in full for cell in _cells(row)]


def _fit(shared: Settings, row: Settings) -> Settings:
    """What a row shares with the others: not a clip norm, if its method has none."""
    method: str = row.get("method") or shared.get("method") or "dpsgd"
    return {
        name: value for name, value in shared.items() if name != "max_grad_norm" or name in catalogue.options(method)
    }


def _cells(row: Settings) -> list[TableCell]:
    """The cells of a row: where a setting is a list, each column has its own."""
    settings = {name: value for name, value in row.items() if name not in ABOUT_A_ROW}
    kind: Kind = "plain" if row.get("kind") == "plain" else "private"
    if kind == "plain":
        settings = {name: value for name, value in settings.items() if name not in ("epsilon", "curve")}
    columns = row.get("columns") or [f"eps{epsilon:g}" for epsilon in _list(settings.get("epsilon"))] or [""]
    printed = _by_measure(row, len(columns))
    cells = []
    for number, column in enumerate(columns):
        own, attack = _at(settings, number), row.get("attack")
        numbers = _at(printed, number)
        cells.append(
            TableCell(
                row=row["name"],
                column=column,
                recipe=read_recipe(None, own, suited=kind == "private"),
                as_claimed=_as_claimed(own, _at(row["as_claimed"], number)) if "as_claimed" in row else None,
                printed={measure: float(value) for measure, value in numbers.items() if not math.isnan(value)},
                minutes=_one(row.get("minutes"), number),
                ours=tuple(row.get("ours", [])),
                kind=kind,
                attack=None if attack is None else _at(attack, number),
                stand_in=_one(row.get("stand_in"), number),
                measures=_measures(row),
                beside=row.get("beside"),
            )
        )
    return cells


def _as_claimed(own: Settings, said: Settings) -> Recipe:
    """The recipe with the paper's noise and length; no epsilon is asked for, whatever heads the column.

    Where a paper charges for kept updates only, their number is what its epsilon fixes, however many attempts it takes.
    """
    fixed: Settings = {}
    selects = "hidden_attempts" in catalogue.options(own.get("method", "dpsgd"))
    if selects and (epsilon := own.get("epsilon")) is not None and "epochs" not in said:
        fixed = {"claimed_epsilon": epsilon, "hidden_attempts": True, "epochs": None}
    return read_recipe(None, own | {"epsilon": None} | fixed | said)


def _by_measure(row: Settings, columns: int) -> Settings:
    """The printed numbers by measure, one a column; a bare number or list is accuracy, nan is a blank."""
    said = row["printed"]
    found = said if isinstance(said, dict) else {} if said is None else {"accuracy": said}
    for measure, values in found.items():
        check_measure(measure)
        if len(_list(values)) != columns:
            raise SettingError(
                f"{row['name']} prints {len(_list(values))} numbers of {measure} in {columns} columns: give one for "
                "each column, nan where the paper prints none"
            )
    return found


def _measures(row: Settings) -> tuple[str, ...]:
    """What is told where nothing is printed; a measure that nobody can read is refused."""
    names: tuple[str, ...] = tuple(row.get("measures", ("accuracy",)))
    for name in names:
        check_measure(name)
    return names


def _list(value: T | list[T] | None) -> list[T]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _at(settings: Settings, number: int) -> Settings:
    return {name: _one(value, number) for name, value in settings.items()}


def _one(value: T | list[T], number: int) -> T:
    return value[number] if isinstance(value, list) else value
