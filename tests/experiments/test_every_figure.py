"""Every number that the five papers print: it has an entry, or a reason why it has none."""

from __future__ import annotations

import pytest

from reticent.experiments.tables import Table, papers, read_tables

PRINTED = {"dpsur": 138, "sa-dpsgd": 55, "dpsign": 128, "dpis": 191, "pd-sgd": 315}
"""How many numbers each paper prints in its tables and figures, counted apart from the entries."""


def counted(paper: str) -> list[Table]:
    """The tables of a paper whose numbers somebody has counted."""
    tables = read_tables(paper)[1]
    if any(table.figures is None for table in tables):
        pytest.skip(f"the numbers of {paper} are not counted yet")
    return tables


@pytest.mark.parametrize("paper", PRINTED)
def test_what_is_printed_is_entered_or_left_out_for_a_reason(paper: str) -> None:
    for table in counted(paper):
        left = sum(one.figures for one in table.left_out)
        assert table.figures == table.entered + left, f"{table.kind} {table.number}: {table.entered} and {left}"
        assert all(one.figures > 0 and one.what and one.why for one in table.left_out), table.title


@pytest.mark.parametrize("paper", PRINTED)
def test_a_second_count_agrees(paper: str) -> None:
    assert sum(table.printed for table in counted(paper)) == PRINTED[paper]


@pytest.mark.parametrize("paper", papers())
def test_what_stands_in_says_for_which_numbers(paper: str) -> None:
    """A row beside another has something to stand beside, and numbers of attacks come with an attack."""
    for table in read_tables(paper)[1]:
        rows = {cell.row for cell in table.cells}
        for cell in table.cells:
            assert cell.beside is None or cell.beside in rows - {cell.row}, cell.name
            attacked = any("." in measure.partition("accuracy")[0] for measure in cell.printed)
            assert not attacked or cell.attack is not None, f"{cell.name} prints attacks, and is not attacked"
            waits = any(measure.startswith("epsilon_at_accuracy") for measure in cell.printed)
            assert not waits or cell.recipe.curve is not None, f"{cell.name} needs a curve"
