"""Shadow models: many trainings of one pipeline, side by side, each kept on disk as soon as it is done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch

from reticent.attacks.intervals import Floats
from reticent.errors import ResumeError, ReticentError
from reticent.executors import each, executor_for
from reticent.files import make_folder, write_private
from reticent.reading import read_text
from reticent.tensors import SEAL, digest_of, read_tensors, write_sealed

Train = Callable[[int], Floats]
"""Trains shadow number i and answers with its logits; must be importable by name if it is to run in processes."""

Tell = Callable[[int, int], None]


def train_shadows(
    train: Train,
    count: int,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    folder: Path | None = None,
    design: dict[str, object] | None = None,
    tell: Tell = lambda _done, _total: None,
) -> Floats:
    """The logits of all shadows, stacked, trained `jobs` at a time or on a `cluster`.

    Those found in `folder` are not trained again.

    >>> train_shadows(lambda number: np.full((1, 2), float(number)), 3)[:, 0, 0]
    array([0., 1., 2.])
    """
    if folder is not None:
        _claim(folder, design or {})
    found = {number: logits for number in range(count) if (logits := _stored(folder, number)) is not None}
    tell(len(found), count)
    missing = [number for number in range(count) if number not in found]
    for number, logits in _trained(train, missing, jobs, cluster):
        if folder is not None:
            _store(folder, number, logits)
        found[number] = logits
        tell(len(found), count)
    return np.stack([found[number] for number in range(count)])


def _trained(train: Train, numbers: list[int], jobs: int | None, cluster: str | None) -> Iterator[tuple[int, Floats]]:
    """Those that can be had; where one fails, the others are trained first."""
    if cluster is None and ((jobs or 1) == 1 or len(numbers) <= 1):
        yield from ((number, train(number)) for number in numbers)
        return
    works = [(str(number), partial(_alone, train, number)) for number in numbers]
    failed = []
    for over in each(partial(executor_for, cluster, jobs), works):
        if over.error is None:
            yield int(over.name), over.answer
        else:
            failed.append(f"shadow model {over.name}: {over.error}")
    if failed:
        raise ReticentError("; ".join(failed))


def _alone(train: Train, number: int, tell: Tell) -> Floats:  # noqa: ARG001 - one is told when it is there
    return train(number)


def _claim(folder: Path, design: dict[str, object]) -> None:
    """Shadows of another design must not be mixed in."""
    make_folder(folder, mode=0o700)
    path, mine = folder / "design.json", json.dumps(design, sort_keys=True)
    if path.exists() and read_text(path) != mine:
        raise ResumeError(f"{folder} holds shadow models of another design: give the same settings, or another folder")
    write_private(path, mine.encode())


def _place(folder: Path, number: int) -> Path:
    return folder / f"shadow-{number:03d}.safetensors"


def _stored(folder: Path | None, number: int) -> Floats | None:
    if folder is None or not _place(folder, number).exists():
        return None
    path = _place(folder, number)
    remedy = "take it away, and it is trained anew"
    tensors, meta = read_tensors(path, remedy)
    if meta.get(SEAL) != digest_of(tensors, meta) or "logits" not in tensors:
        raise ResumeError(f"{path} is damaged: its checksum is not that of what is in it: {remedy}")
    return np.asarray(tensors["logits"].numpy(), dtype=np.float64)


def _store(folder: Path, number: int, logits: Floats) -> None:
    """Whole or not at all: a crash must not leave half a model's answers behind."""
    write_sealed(_place(folder, number), {"logits": torch.from_numpy(np.ascontiguousarray(logits))}, {})
