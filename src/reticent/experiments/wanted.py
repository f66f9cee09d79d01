"""Wanted runs: what the cells of papers ask for, at a proved epsilon and as claimed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from reticent.experiments.cells import TableCell
from reticent.experiments.published import essence_for, marked
from reticent.experiments.recipe import Recipe
from reticent.experiments.tables import Table, read_tables

MAIN = {
    "dpsur": ("2",),
    "sa-dpsgd": ("1",),
    "dpsign": ("3", "4", "5"),
    "dpis": ("3",),
    "pd-sgd": ("2",),
    "handcrafted": ("best",),
}
"""The tables that each paper's claim stands on."""


@dataclass(frozen=True, eq=False)
class Wanted:
    """A run that a cell of a table asks for.

    >>> wanted(["dpsur"])[0].command
    'reticent reproduce dpsur --table 2 --cells mnist-dpsur-eps1'
    """

    paper: str
    table: Table
    cell: TableCell
    claimed: bool
    """With the paper's own noise and length, instead of what a proved epsilon affords."""

    @property
    def recipe(self) -> Recipe:
        """What is run."""
        found = self.cell.as_claimed if self.claimed else self.cell.recipe
        assert found is not None
        return found

    @property
    def attack(self) -> Mapping[str, object] | None:
        """How it is attacked."""
        return self.cell.attack

    @cached_property
    def essence(self) -> str:
        """What it has in common with every run that gives the cell's accuracy."""
        return essence_for(self.recipe, self.cell.kind)

    @property
    def mark(self) -> str:
        """What it has in common with every run that gives the figures of the cell's attacks and its curve too."""
        return marked(self.essence, self.attack, self.recipe.curve)

    @property
    def main(self) -> bool:
        """Whether the paper's claim stands on its table."""
        return is_main(self.paper, self.table)

    @property
    def place(self) -> str:
        """Where it stands, as the command line says it."""
        return f"{self.paper} --{self.table.kind} {self.table.number}"

    @property
    def command(self) -> str:
        """What runs this cell alone."""
        return f"reticent reproduce {self.place} --cells {self.cell.name}{' --as-claimed' * self.claimed}"


def is_main(paper: str, table: Table) -> bool:
    """Whether a paper's claim stands on a table."""
    return table.kind == "table" and table.number in MAIN.get(paper, ())


def wanted(papers: Sequence[str]) -> list[Wanted]:
    """Everything that the cells of some papers ask for, both ways."""
    return [
        Wanted(paper, table, cell, claimed)
        for paper in papers
        for table in read_tables(paper)[1]
        for cell in table.cells
        for claimed in (False, True)
        if not claimed or (cell.as_claimed is not None and cell.kind == "private")
    ]
