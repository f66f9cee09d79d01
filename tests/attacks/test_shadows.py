"""Shadow models: trained side by side, stored one by one, never mixed with those of another design."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reticent.attacks.shadows import train_shadows
from reticent.errors import ResumeError


def square(number: int) -> np.ndarray:
    """Stands for a training: importable by name, so that processes can run it."""
    return np.full((2, 3), float(number * number))


def test_all_shadows_come_back_in_order() -> None:
    assert train_shadows(square, 4)[:, 0, 0].tolist() == [0, 1, 4, 9]


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    train_shadows(square, 3, tell=lambda done, total: told.append((done, total)))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_after_a_crash_only_the_missing_are_trained(tmp_path: Path) -> None:
    trained: list[int] = []

    def train(number: int) -> np.ndarray:
        if number == 2 and len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(number)
        return square(number)

    with pytest.raises(KeyboardInterrupt):
        train_shadows(train, 4, folder=tmp_path)
    trained.append(-1)
    assert train_shadows(train, 4, folder=tmp_path)[:, 0, 0].tolist() == [0, 1, 4, 9]
    assert trained == [0, 1, -1, 2, 3]


def test_shadows_of_another_design_are_refused(tmp_path: Path) -> None:
    train_shadows(square, 2, folder=tmp_path, design={"seed": 0})
    with pytest.raises(ResumeError, match="another design"):
        train_shadows(square, 2, folder=tmp_path, design={"seed": 1})
