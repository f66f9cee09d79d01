"""Fast checks that privacy is by person: each mutant of people_mutants.py must make one of them fail."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor, nn

from reticent.accounting import Gaussian, Ledger, Planned, Subsampled
from reticent.data.features.statistics import release_mean
from reticent.errors import PrivacyWarning, ResumeError, SettingError
from reticent.inside import Randomness, Vault, by_person
from reticent.methods import dpsgd
from reticent.run import Run

ROWS = np.array([1, 2, 3, 5, 9, 20])
"""How many rows each of six persons has."""
WHOSE = np.repeat(np.arange(6), ROWS)
FEW = 1e-9


def first_output(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """The gradient of a row is the row itself."""
    return model(batch[0])[:, 0]


def made(x: Tensor, whose: np.ndarray | None, **options: Any) -> Run:
    model = options.pop("model", None) or nn.Linear(x.shape[1], 1, bias=False)
    rest: dict[str, Any] = {"batch_size": 3, "size": 6, "rounds": 1, "delta": 1e-5, "seed": 0} | options
    method, optimizer = dpsgd(noise_multiplier=1.0), torch.optim.SGD(model.parameters(), lr=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return Run(model, optimizer, (x,), method=method, groups=whose, loss=first_output, **rest)


def sealed(x: Tensor, whose: np.ndarray, **options: Any) -> Tensor:
    run = made(x, whose, **options)
    probe = run.watch()
    run.step()
    return probe.openings[0].sealed.double()


def a_person_is_bounded_as_one() -> None:
    """Whoever is left out, with however many rows, moves the sum by at most the bound of one."""
    x = 100 * torch.eye(6)[WHOSE] + torch.randn(len(WHOSE), 6, generator=torch.Generator().manual_seed(0))
    whole = sealed(x, WHOSE, batch_size=6)
    for person in range(6):
        others = person != WHOSE
        assert float((whole - sealed(x[others], WHOSE[others], batch_size=6)).norm()) <= 1 + 1e-4


def a_mean_is_bounded_as_one() -> None:
    """The same for a mean that is released before training."""
    x = torch.randn(len(WHOSE), 3, generator=torch.Generator().manual_seed(0)) + 2

    def released(keep: np.ndarray) -> Tensor:
        vault = Vault(
            by_person((x[keep],), WHOSE[keep]),
            randomness=Randomness.from_seed(0),
            ledger=Ledger(),
            allowance=Planned([Gaussian(FEW)]),
        )
        return 6 * release_mean(vault, lambda part: part, limit=0.5, noise_multiplier=FEW, size=6)

    whole = released(WHOSE >= 0)
    assert all(float((whole - released(person != WHOSE)).norm()) <= 0.5 + 1e-4 for person in range(6))


def persons_are_drawn_whole() -> None:
    """In every round a person takes part with all rows or none, and so each as often as is charged."""
    took, rounds = np.zeros(6), 200
    x = torch.eye(len(WHOSE)) * 1e-3  # below the bound: the sum tells who is in it
    run = made(x, WHOSE, rounds=rounds)
    probe = run.watch()
    for _ in run:
        pass
    for opening in probe.openings:
        weights = opening.sealed.numpy() / 1e-3
        for person, rows in enumerate(ROWS):
            mine = weights[person == WHOSE]
            assert np.allclose(mine, 0) or np.allclose(mine, 1 / rows, rtol=1e-4), "some rows of a person only"
            took[person] += mine.any()
    assert set(run.plan.tally()) == {Subsampled(0.5, Gaussian(1.0))}
    assert all(stats.binomtest(int(count), rounds, 0.5).pvalue > 1e-3 for count in took)


def the_unit_is_said() -> None:
    """The guarantee names persons, and the number of them is what is public."""
    said = made(torch.eye(len(WHOSE)), WHOSE).guarantee()
    assert said.unit == "person"
    assert "add or remove one person (all their rows)" in str(said)
    assert "number of persons" in said.assumptions[0]


def other_persons_are_other_examples() -> None:
    """A run does not go on with the same rows in other hands: its noise would be used again on another sum."""
    x = torch.eye(len(WHOSE))
    with tempfile.TemporaryDirectory() as folder:
        made(x, WHOSE, folder=folder)
        try:
            made(x, WHOSE[::-1].copy(), folder=folder, resume=True)
        except ResumeError:
            return
    raise AssertionError("the run went on with other persons")


def noise_makes_up_for_rows() -> None:
    """Rows of a person are rounded into the sum one by one: the noise covers as many terms."""
    run = made(torch.eye(len(WHOSE)), WHOSE, size=1000, batch_size=1000)
    draw = run._vault.draw(run.plan.method.sampler, run.plan.settings)
    query = run.plan.method.query(run._task, run.plan.method.bound, run.plan.settings)
    found = run._vault.ask(query, draw).slack
    assert found >= 1 + 2.0**-24 * 2560 / 96 * 1000


def rows_and_persons_do_not_add_up() -> None:
    """Weights that cost something by row are not trained on by person, as if one price held for both."""
    x = torch.eye(len(WHOSE))
    first = made(x, WHOSE)
    for groups in (None, WHOSE):
        try:
            made(x, groups, initial=first, model=first.model)
        except SettingError:
            assert groups is None
        else:
            assert groups is not None, "a run by row went on from one by person"


CHECKS: list[Callable[[], None]] = [
    a_person_is_bounded_as_one,
    a_mean_is_bounded_as_one,
    persons_are_drawn_whole,
    the_unit_is_said,
    other_persons_are_other_examples,
    noise_makes_up_for_rows,
    rows_and_persons_do_not_add_up,
]
