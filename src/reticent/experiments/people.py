"""Whose the rows of a recipe's dataset are: the examples of its run, persons if the recipe says so."""

from __future__ import annotations

import numpy as np

from reticent.data import Examples
from reticent.errors import SettingError
from reticent.experiments.recipe import Recipe
from reticent.inside import Store, by_person


def people_of(recipe: Recipe, private: Examples) -> Store:
    """The private examples: rows, or persons where they say whose they are.

    >>> import torch
    >>> rows = Examples(torch.zeros(3, 2), torch.zeros(3), groups=torch.tensor([4, 4, 9]))
    >>> len(people_of(Recipe(groups="patient"), rows))
    2
    """
    if recipe.groups is not None and private.groups is None:
        raise SettingError(f"groups is {recipe.groups!r}, but nothing tells whose the rows of {recipe.data} are")
    return by_person(private, None, recipe.most_rows)


def set_aside(train: Examples, count: int | None) -> tuple[Examples, Examples | None]:
    """Split training examples into private ones and others, so many, the same way every time; persons stay whole.

    >>> import torch
    >>> rows = Examples(torch.zeros(5, 2), torch.arange(5), groups=torch.tensor([0, 0, 1, 2, 2]))
    >>> [part.groups.tolist() for part in set_aside(rows, 1)]
    [[0, 0, 1], [2, 2]]
    """
    if count is None:
        return train, None
    found = np.arange(len(train)) if train.groups is None else np.unique(train.groups.numpy())
    if not 0 < count < len(found):
        kind = "training examples" if train.groups is None else "persons"
        raise SettingError(f"setting {count} aside must leave some of the {len(found)} {kind}")
    order = np.random.RandomState(0).permutation(len(found))
    if train.groups is None:
        return train.take(order[count:]), train.take(order[:count])
    aside = np.isin(train.groups.numpy(), found[order[:count]])
    return train.take(np.flatnonzero(~aside)), train.take(np.flatnonzero(aside))


def subset_of(train: Examples, count: int) -> Examples:
    """So many training examples (or persons), the same ones every time; all of them, if that is how many there are.

    >>> import torch
    >>> subset_of(Examples(torch.zeros(5, 2), torch.arange(5)), 2).y.tolist()
    [2, 0]
    """
    there = len(train) if train.groups is None else len(np.unique(train.groups.numpy()))
    if count == there:
        return train
    if count > there:
        kind = "training examples" if train.groups is None else "persons"
        raise SettingError(f"subset is {count}, and there are {there} {kind}: give fewer, or leave it out")
    chosen = set_aside(train, count)[1]
    assert chosen is not None
    return chosen
