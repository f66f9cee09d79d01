"""Digits: 1,797 handwritten digits of 8x8 pixels that come with scikit-learn, so nothing is downloaded."""

from __future__ import annotations

from pathlib import Path

import torch

from reticent.data.examples import SPLIT_NOTE, Dataset, Examples, fixed_split

_INK = 16.0  # pixels count ink from 0 to 16


def load(_folder: Path) -> Dataset:
    """Load the embedded digits as 1x8x8 images in [0, 1] with the fixed public split.

    >>> digits = load(Path())
    >>> len(digits.train), len(digits.test), digits.inputs
    (1437, 360, (1, 8, 8))
    """
    from sklearn.datasets import load_digits  # here, because it takes a second that other datasets need not wait

    images, labels = load_digits(return_X_y=True)
    x = torch.as_tensor(images, dtype=torch.float32).div(_INK).reshape(-1, 1, 8, 8)
    train, test = fixed_split(Examples(x, torch.as_tensor(labels, dtype=torch.int64)))
    return Dataset("digits", train, test, classes=10, note=f"embedded in scikit-learn; {SPLIT_NOTE}")
