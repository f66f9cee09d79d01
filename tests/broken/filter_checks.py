"""Checks of directions that remember: what was dropped is forgotten, what was kept is in the checkpoint."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace

import torch

from reticent.audits.toy import Known, examples, known_loss
from reticent.methods import disk, doppler
from reticent.outside import NoisyTest, Selective
from reticent.run import Run


def _run(method: object, **settings: object) -> Run:
    torch.manual_seed(0)
    model = Known(4)
    sgd = torch.optim.SGD(model.parameters(), lr=1.0)
    data = examples(1.0, size=200)
    return Run(model, sgd, data, method=method, loss=known_loss, batch_size=20, delta=1e-5, seed=0, **settings)  # type: ignore[arg-type]


def _bits(run: Run) -> list[torch.Tensor]:
    return [part.clone() for part in run._standing.remembered.values()]


def dropped_rounds_are_forgotten() -> None:
    """A round that was dropped leaves nothing in what the direction remembers, in any way."""
    for method in (disk(noise_multiplier=4.0), doppler(noise_multiplier=4.0)):
        run, dropped = _run(replace(method, gate=Selective(NoisyTest(batch_size=10))), rounds=12), 0
        for _ in range(12):
            before = _bits(run)
            if not run.step().kept:
                dropped += 1
                after = _bits(run)
                assert len(before) == len(after)
                assert all(map(torch.equal, before, after))
        assert dropped


def filters_go_on_where_they_were() -> None:
    """A run that is resumed ends where one ends that was never stopped."""
    for method in (disk(noise_multiplier=1.0), doppler(noise_multiplier=1.0)):
        whole = _run(method, rounds=6)
        list(whole)
        with tempfile.TemporaryDirectory() as folder:
            half = _run(method, rounds=6, folder=folder)
            for _ in range(3):
                half.step()
            half.save()
            again = _run(method, rounds=6, folder=folder, resume=True)
            list(again)
        for one, other in zip(whole.model.parameters(), again.model.parameters(), strict=True):
            assert torch.equal(one, other)


CHECKS: list[Callable[[], None]] = [dropped_rounds_are_forgotten, filters_go_on_where_they_were]
