"""A store of persons: every row of a person or none, laid out by that person's rows alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset

from reticent.errors import DataError, SettingError
from reticent.gradients.grouped import Grouped
from reticent.inside import Persons, as_store, by_person

SIZES = {"ann": 1, "bo": 5, "cy": 2, "di": 1, "ed": 12}


def rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of rows, and whose they are, in no order."""
    whose = np.random.default_rng(seed).permutation(np.repeat(list(SIZES), list(SIZES.values())))
    return np.arange(len(whose)), whose


def taken(store: Persons, index: np.ndarray | None = None) -> list[tuple[list[int], list[float]]]:
    """The rows and weights of each person."""
    index = np.arange(len(store)) if index is None else index
    found = []
    for part in store.parts(index):
        batch = store.take(part)
        found += list(zip(batch.rows[0].tolist(), batch.weights.tolist(), strict=True))
    return found


@pytest.mark.parametrize("kind", ["names", "objects", "numbers", "tensor", "list"])
def test_all_rows_of_a_person_are_one_example(kind: str) -> None:
    numbers, whose = rows()
    codes = np.unique(whose, return_inverse=True)[1] * 7
    groups = {
        "names": whose,
        "objects": whose.astype(object),
        "numbers": codes,
        "tensor": torch.from_numpy(codes),
        "list": whose.tolist(),
    }[kind]
    store = by_person((numbers,), groups)
    assert isinstance(store, Persons)
    assert len(store) == len(SIZES)
    found = taken(store)
    assert sorted(len(set(mine)) for mine, _ in found) == sorted(SIZES.values())
    for mine, weights in found:
        assert len({whose[row] for row in mine}) == 1
        count = SIZES[str(whose[mine[0]])]
        assert sorted(set(mine)) == sorted(np.flatnonzero(whose == whose[mine[0]]))
        assert weights[:count] == pytest.approx([1 / count] * count)
        assert weights[count:] == [0.0] * (len(weights) - count)


def test_a_persons_layout_does_not_depend_on_the_others() -> None:
    numbers, whose = rows()
    alone = whose == "bo"
    (mine,) = taken(by_person((numbers[alone],), whose[alone]))
    assert mine in taken(by_person((numbers,), whose))


def test_a_part_has_one_layout_and_few_rows_for_nothing() -> None:
    numbers, whose = rows()
    store = by_person((numbers,), whose)
    widths = [store.take(part).weights.shape for part in store.parts(np.arange(len(store)))]
    assert widths == [(2, 1), (1, 2), (1, 8), (1, 16)]
    assert sum(persons * width for persons, width in widths) < 2 * len(numbers)


def test_parts_are_those_that_were_asked_for_in_order() -> None:
    """What is remembered of each person is put back in the order of their numbers."""
    numbers, whose = rows()
    store = by_person((numbers,), whose)
    asked = np.array([0, 2, 4])
    assert np.array_equal(np.concatenate(list(store.parts(asked))), asked)
    assert np.array_equal(np.concatenate(list(store.parts(asked[::-1]))), asked)
    assert list(store.parts(np.zeros(0, np.int64))) == []


def test_memory_bounds_the_rows_of_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reticent.inside.columns.MOST_BYTES", 64)
    store = by_person((np.zeros((40, 2), np.float32),), np.arange(40) // 4)
    assert {len(part) for part in store.parts(np.arange(10))} == {2}


@pytest.mark.parametrize("most", [1, 3, 4, 5])
def test_of_many_rows_so_many_take_part_and_each_has_its_turn(most: int) -> None:
    numbers, whose = rows()
    store = by_person((numbers,), whose, most_rows=most)
    last = len(store) - 1  # who has the most rows
    seen = np.zeros(len(numbers))
    for turn in range(SIZES["ed"]):
        ((mine, weights),) = taken(store.turned(turn), np.array([last]))
        assert len(set(mine)) == len(mine) == most
        assert weights == pytest.approx([1 / most] * most)
        seen[mine] += 1
    assert set(seen[whose == "ed"]) == {most}
    assert seen.sum() == most * SIZES["ed"]


def test_persons_of_few_rows_take_part_with_all_of_them() -> None:
    numbers, whose = rows()
    few = by_person((numbers,), whose, most_rows=8)
    for turn in (0, 1, 7):
        assert taken(few.turned(turn))[:4] == taken(by_person((numbers,), whose))[:4]


def test_records_of_a_dataset_are_grouped_too() -> None:
    class Visits(Dataset[dict[str, torch.Tensor]]):
        def __len__(self) -> int:
            return 6

        def __getitem__(self, place: int) -> dict[str, torch.Tensor]:
            if place == 5:
                raise OSError("cannot be read")
            return {"x": torch.full((2,), float(place)), "y": torch.tensor(place)}

    batch = by_person(Visits(), [0, 0, 1, 1, 1, 2]).take(np.arange(3))
    assert isinstance(batch, Grouped)
    assert batch.rows["x"].shape == (3, 4, 2)
    assert batch.rows["x"][0].isnan().all(), "who cannot be read counts for nothing"
    assert batch.rows["y"][1].tolist() == [0, 1, 0, 1]


def test_a_column_of_a_dict_is_no_input_then() -> None:
    columns = {"x": np.zeros((3, 2)), "who": np.array(["b", "a", "b"]), "y": np.arange(3)}
    store = by_person(columns, "who")
    assert len(store) == 2
    assert set(store.take(np.arange(2)).rows) == {"x", "y"}
    with pytest.raises(SettingError, match="no named column"):
        by_person(columns, "whom")


def test_without_groups_nothing_is_assumed() -> None:
    pair = (np.zeros((4, 2)), np.array([1, 1, 2, 2]))
    assert len(by_person(pair)) == 4
    store = as_store(pair)
    assert by_person(store) is store


@pytest.mark.parametrize(("groups", "says"), [
    ([1, 2, 3], "each of the 4 rows"),
    ([[1], [2], [3], [4]], "each of the 4 rows"),
    ([1.0, float("nan"), 2.0, 2.0], "whose it is"),
    ([1, None, 2, 2], "whose it is"),
    ("patient", "no named column"),
])  # fmt: skip
def test_groups_that_do_not_say_whose_each_row_is_are_refused(groups: object, says: str) -> None:
    with pytest.raises((DataError, SettingError), match=says):
        by_person((np.zeros((4, 2)),), groups)


@pytest.mark.parametrize(("groups", "most", "says"), [(None, 3, "groups"), ([0, 0], 0, "1 or more")])
def test_most_rows_is_for_persons_and_above_zero(groups: object, most: int, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        by_person((np.zeros((2, 2)),), groups, most)
