"""Private statistics in one line: released through the door, charged to the run, and part of the model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import reticent as rt
from reticent.accounting import Gaussian, price
from reticent.accounting.ledger import read_entries
from reticent.audits.stored import check_stored
from reticent.data.tables.schema import Schema
from reticent.errors import SettingError
from reticent.models.normalising import PublicNormalise
from reticent.normalised import Normalised

X = torch.rand(400, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([0.2, 1.0, 0.5]) + 0.1
Y = (X[:, 1] > 0.5).long()


def fit(examples: object, folder: Path | None = None, **more: object) -> rt.Trained:
    torch.manual_seed(0)
    settings: dict[str, object] = {"epsilon": 3.0, "epochs": 1, "batch_size": 100, "seed": 0, "folder": folder, **more}
    return rt.fit(nn.Linear(3, 2), examples, **settings)  # type: ignore[arg-type]


def front(trained: rt.Trained) -> PublicNormalise:
    layer = trained.model[0]  # type: ignore[index]
    assert isinstance(layer, PublicNormalise)
    return layer


def test_the_statistics_are_in_the_ledger_and_in_the_price(tmp_path: Path) -> None:
    trained = fit(rt.normalise((X, Y), budget_share=0.2), tmp_path)
    events = [entry.event for entry in read_entries(tmp_path / "statistics.jsonl")]
    assert len(events) == 2
    assert isinstance(events[0], Gaussian)
    alone = price({events[0]: 2}, trained.guarantee.delta).epsilon
    assert 0.59 < alone <= 0.6
    assert trained.guarantee.epsilon <= 3.0
    assert check_stored(tmp_path, trained.guarantee).holds


def test_what_is_not_charged_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the run is planned as if nothing had been released before it."""
    right = rt.run.Run.__init__

    def forgetful(self: rt.Run, *args: object, already: object, **rest: object) -> None:
        right(self, *args, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(rt.run.Run, "__init__", forgetful)
    trained = fit(rt.normalise((X, Y), noise_multiplier=1.0), tmp_path)
    assert not check_stored(tmp_path, trained.guarantee).holds


def test_means_and_deviations_are_those_of_the_data() -> None:
    found = front(fit(rt.normalise((X, Y), noise_multiplier=0.5), epsilon=None, noise_multiplier=2.0))
    torch.testing.assert_close(found.mean, X.mean(0), atol=0.01, rtol=0)
    torch.testing.assert_close(found.std, X.std(0), atol=0.03, rtol=0)


def test_other_ranges_and_channels_of_images() -> None:
    images = 10 * torch.rand(300, 2, 4, 4, generator=torch.Generator().manual_seed(1)) - 5
    model = nn.Sequential(nn.Flatten(), nn.Linear(32, 2))
    asked = rt.normalise((images, Y[:300]), noise_multiplier=0.5, low=-5, high=5)
    found = front(rt.fit(model, asked, noise_multiplier=2.0, epochs=1, seed=0))
    assert found.mean.shape == (2, 1, 1)
    torch.testing.assert_close(found.mean.flatten(), images.mean((0, 2, 3)), atol=0.2, rtol=0)
    torch.testing.assert_close(found.std.flatten(), torch.full((2,), 10 / 12**0.5), atol=0.3, rtol=0)


def test_one_example_moves_the_sums_by_no_more_than_is_charged() -> None:
    """However far outside the declared range it is."""
    seen: list[torch.Tensor] = []
    for wild in (0.0, 1e30, float("inf"), float("nan")):
        x = X.clone()
        x[0] = wild
        asked = rt.normalise((x, Y), noise_multiplier=1.0)  # one seed, one noise: it cancels out
        seen.append(front(fit(asked, epsilon=None, noise_multiplier=2.0)).mean)
    for mean in seen[1:]:
        assert float((mean - seen[0]).norm()) <= 3**0.5 / len(X) * (1 + 1e-3)


def test_the_model_comes_back_normalised(tmp_path: Path) -> None:
    trained = fit(rt.normalise((X, Y), budget_share=0.1))
    trained.save(tmp_path)
    again = rt.load(tmp_path, nn.Linear(3, 2))
    assert torch.equal(again.predict(X), trained.predict(X))
    assert rt.export(again, tmp_path / "out").exists()


def test_resuming_asks_for_nothing_again(tmp_path: Path) -> None:
    once = fit(rt.normalise((X, Y), budget_share=0.1), tmp_path)
    again = fit(rt.normalise((X, Y), budget_share=0.1), tmp_path, resume=True)
    assert torch.equal(front(once).mean, front(again).mean)
    assert len(list(read_entries(tmp_path / "statistics.jsonl"))) == 2


def test_tables_are_normalised_by_name() -> None:
    columns = {name: {"low": 0, "high": 2} for name in "abc"}
    schema = Schema.from_json({"label": "y", "classes": ["no", "yes"], "columns": columns})
    frame = {name: X[:, place].tolist() for place, name in enumerate("abc")}
    examples = schema.examples({**frame, "y": [schema.classes[label] for label in Y.tolist()]})
    trained = fit(rt.normalise(examples, budget_share=0.1))
    assert set(trained.predict(frame)) <= {"no", "yes"}  # type: ignore[call-overload]
    assert any("declared" in text for text in trained.guarantee.assumptions)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "one of the two"),
        ({"budget_share": 0.1, "noise_multiplier": 1.0}, "one of the two"),
        ({"budget_share": 1.5}, "between 0 and 1"),
        ({"noise_multiplier": 1.0, "low": 1.0}, "low must be below high"),
    ],
)
def test_what_cannot_be_asked(settings: dict[str, float], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        rt.normalise((X, Y), **settings)  # type: ignore[arg-type]


def test_a_share_needs_a_budget() -> None:
    asked = rt.normalise((X, Y), budget_share=0.1)
    assert isinstance(asked, Normalised)
    with pytest.raises(SettingError, match=r"give rt\.fit an epsilon"):
        fit(asked, epsilon=None, noise_multiplier=2.0)
