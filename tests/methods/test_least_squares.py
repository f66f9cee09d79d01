"""DP least squares: what is released, what is solved of it, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent.accounting import Gaussian
from reticent.errors import DataError, ModelError
from reticent.inside import Clip, RoundSettings, Statistics
from reticent.inside.labelled_rows import classes_of, parts_of
from reticent.inside.least_squares import folded, targets_of, unfolded
from reticent.outside import Solved

Pair = tuple[Tensor, Tensor]


def fitted(examples: Pair, **said: Any) -> rt.Trained:
    model = said.pop("model", None) or nn.Linear(examples[0].shape[1], 2)
    settings = {"epsilon": 4.0, "delta": 1e-5, "seed": 0, "loss": "cross_entropy"}
    return rt.fit(model, examples, method="least_squares", **settings | said)


def test_a_matrix_survives_being_folded_and_keeps_its_length() -> None:
    rows = torch.randn(9, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    gram = rows.T @ rows
    assert torch.allclose(unfolded(folded(gram), 5), gram)
    assert folded(gram).norm() == pytest.approx(float(gram.norm()))


def test_without_noise_the_solution_is_that_of_least_squares() -> None:
    rng = torch.Generator().manual_seed(1)
    x, y = torch.randn(300, 4, generator=rng).double() / 10, torch.randint(3, (300,), generator=rng)
    rows = torch.cat([x, torch.ones(300, 1).double()], 1) / 2**0.5
    targets = targets_of(y, 3)
    released = torch.cat([folded(rows.T @ rows), 2.0 * (rows.T @ targets).reshape(-1)])
    here = torch.full((15,), 0.3, dtype=torch.float64)
    step, known = Solved(ridge=0.5).follow(released, RoundSettings(300, 300, 1.0, 0.0), here, {})
    plain = torch.cat([x, torch.ones(300, 1).double()], 1)
    best = torch.linalg.lstsq(plain, targets).solution * 10.0
    assert torch.allclose(here - step, torch.cat([best[:4].T.reshape(-1), best[4]]), atol=1e-5)
    again, more = Solved(ridge=0.5).follow(released, RoundSettings(300, 300, 1.0, 0.0), here, known)
    assert torch.allclose(again, step)
    assert more["count"].item() == 2


def test_one_release_pays_for_everything_and_it_learns(blobs: Pair) -> None:
    trained = fitted(blobs)
    assert trained.guarantee.status == "proved"
    assert trained.guarantee.epsilon <= 4.0
    assert trained.call is not None
    assert trained.call.plan.rounds == 1
    (event,) = trained.call.plan.tally()
    assert isinstance(event, Gaussian)
    assert trained.evaluate(*blobs)["accuracy"] > 0.75
    assert trained.predict(blobs[0][:3]).shape[0] == 3


def test_a_folder_is_verified(blobs: Pair, tmp_path: Path) -> None:
    fitted(blobs, folder=tmp_path)
    assert rt.verify(tmp_path).ok


def test_bad_records_count_for_nothing(blobs: Pair) -> None:
    x, y = blobs
    odd = torch.full((2, x.shape[1]), float("nan"))
    task_rows = (torch.cat([x, odd, x[:1]]), torch.cat([y, y[:2], torch.tensor([7])]))
    clean, dirty = (_answer(pair) for pair in (blobs, task_rows))
    assert torch.allclose(clean, dirty)


def _answer(pair: Pair, width: int | None = None) -> Tensor:
    import numpy as np

    from reticent.inside import Flat, Task
    from reticent.inside.drawn import Drawn
    from reticent.inside.draws import Draw, Everyone
    from reticent.inside.store import as_store

    model = nn.Linear(width or pair[0].shape[1], 2)
    task = Task(model, lambda model, batch: model(batch[0])[:, 0], Flat(model))
    now = RoundSettings(len(pair[0]), len(pair[0]), 1.0, 1.0)
    draw = Draw(np.arange(len(pair[0])), Everyone(), now)
    return Statistics()(task, Clip(), now).answer(Drawn(draw, np.random.default_rng(0), {}, as_store(pair)))


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)),
        nn.Linear(4, 2, bias=False),
        nn.Sequential(nn.Linear(4, 2), nn.Identity()),
    ],
    ids=["two layers", "no bias", "not the last"],
)
def test_other_models_are_refused(model: nn.Module, blobs: Pair) -> None:
    with pytest.raises(ModelError, match="one linear layer"):
        fitted(blobs, model=model)


@pytest.mark.parametrize(("x", "y"), [((6, 4), (6, 3)), ((6, 2, 4), (6,))], ids=["several labels", "several rows"])
def test_an_example_is_one_row_and_one_label(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="one row of 4 features and one label"):
        _answer((torch.ones(x), torch.zeros(y, dtype=torch.int64)), width=4)


def test_fixed_layers_may_come_before() -> None:
    frozen = nn.Linear(4, 3).requires_grad_(False)
    model = nn.Sequential(nn.Sequential(nn.Flatten(), frozen), nn.Tanh(), nn.Linear(3, 2))
    before, last = parts_of(model)
    assert len(before) == 2
    assert last.out_features == 2


def test_labels_must_be_classes() -> None:
    with pytest.raises(DataError, match="whole numbers"):
        classes_of(torch.tensor([0.5]), 3)
    found, known = classes_of(torch.tensor([0.0, 1.0, 2.0]), 1)
    assert known.tolist() == [True, True, False]
    assert targets_of(found[known], 1).flatten().tolist() == [-0.5, 0.5]
