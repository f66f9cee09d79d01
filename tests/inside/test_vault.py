"""The door: it writes before it opens, refuses what is not planned, and covers an attempt by one event."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from reticent.accounting import Event, Gaussian, Ledger, Planned, SelectiveAttempt, Subsampled
from reticent.accounting.ledger import read_entries
from reticent.errors import BudgetSpent, FileWarning, ResumeError, SettingError
from reticent.inside import Drawn, Everyone, GaussianNoise, Poisson, Randomness, RoundSettings, Sealed, Vault, as_store
from reticent.inside.randomness import Streams

GRADIENT = Subsampled(0.5, Gaussian(2.0))
SETTINGS = RoundSettings(10, 5, 1.0, 2.0)


@dataclass(frozen=True)
class Total:
    """The sum of all numbers."""

    sensitivity: float = 1.0

    def answer(self, drawn: Drawn) -> Tensor:
        return sum((x.sum(0) for (x,) in drawn.batches()), torch.zeros(1))


def vault(plan: dict[Event, int], ledger: Ledger | None = None, data: float = 1.0) -> Vault:
    examples = as_store((torch.full((10, 1), data),))
    book = Ledger() if ledger is None else ledger
    return Vault(examples, randomness=Randomness.from_seed(0), ledger=book, allowance=Planned(plan))


def ask_and_release(room: Vault) -> Tensor:
    return room.release(room.ask(Total(), room.draw(Poisson(), SETTINGS)), GaussianNoise(2.0))


def test_every_release_is_in_the_ledger_with_its_provenance() -> None:
    room = vault({GRADIENT: 3})
    for number in range(3):
        with room.round(number):
            ask_and_release(room)
    assert [entry.event for entry in room.ledger] == [GRADIENT] * 3
    assert [entry.round for entry in room.ledger] == [0, 1, 2]


def test_what_is_not_planned_is_refused_and_nothing_is_left() -> None:
    room = vault({GRADIENT: 1})
    with room.round(0):
        ask_and_release(room)
        with pytest.raises(BudgetSpent, match="nothing was released"):
            ask_and_release(room)
    assert len(room.ledger) == 1


def test_the_ledger_is_on_disk_before_the_noise_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"

    class Watching(GaussianNoise):
        def _open(self, sealed: Sealed, place: Streams) -> Tensor:
            assert len(read_entries(path)) == 1
            return super()._open(sealed, place)

    room = vault({GRADIENT: 1}, Ledger(path))
    with room.round(0):
        room.release(room.ask(Total(), room.draw(Poisson(), SETTINGS)), Watching(2.0))


def test_a_crash_before_opening_counts_and_a_replay_gives_the_same_value_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    first = vault({GRADIENT: 1}, Ledger(path))
    with first.round(0):
        value = ask_and_release(first)
    again = vault({GRADIENT: 1}, Ledger(path))
    with again.round(0):
        assert torch.equal(ask_and_release(again), value)
    assert len(read_entries(path)) == 1


@pytest.mark.parametrize("change", ["data", "event"])
def test_a_replay_on_something_else_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "ledger.jsonl"
    first = vault({GRADIENT: 1}, Ledger(path))
    with first.round(0):
        ask_and_release(first)
    again = vault({GRADIENT: 1}, Ledger(path), data=2.0 if change == "data" else 1.0)
    noise = GaussianNoise(3.0 if change == "event" else 2.0)
    with again.round(0), pytest.raises(ResumeError, match="would reveal it"):
        again.release(again.ask(Total(), again.draw(Poisson(), SETTINGS)), noise)


def test_a_line_cut_short_by_a_crash_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    room = vault({GRADIENT: 2}, Ledger(path))
    with room.round(0):
        ask_and_release(room)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"length":147,"cha')
    again = vault({GRADIENT: 2}, Ledger(path))
    assert len(again.ledger) == 1
    with again.round(0), pytest.warns(FileWarning, match="mended"):
        ask_and_release(again)
    assert path.read_bytes() == whole


def test_a_bundle_is_one_event_for_several_releases() -> None:
    event = SelectiveAttempt(0.5, 2.0, 0.5, 0.2, 0.5)
    room = vault({event: 1})
    with room.round(0), room.bundle(event, [GRADIENT, GRADIENT]):
        ask_and_release(room)
        ask_and_release(room)
        with pytest.raises(SettingError, match="nothing more"):
            ask_and_release(room)
    assert room.ledger.tally() == {event: 1}


def test_a_bundle_covers_only_what_it_says() -> None:
    event = SelectiveAttempt(0.5, 2.0, 0.5, 0.2, 0.5)
    room = vault({event: 1})
    with room.round(0), room.bundle(event, [GRADIENT]), pytest.raises(SettingError, match="nothing was released"):
        room.release(room.ask(Total(), room.draw(Everyone(), SETTINGS)), GaussianNoise(2.0))
    assert len(room.ledger) == 0


def test_an_empty_draw_is_noised_and_charged() -> None:
    tiny = RoundSettings(10, 1e-9, 1.0, 2.0)
    event = Subsampled(tiny.rate, Gaussian(2.0))
    room = vault({event: 1})
    with room.round(0):
        value = room.release(room.ask(Total(), room.draw(Poisson(), tiny)), GaussianNoise(2.0))
    assert value.item() != 0
    assert room.ledger.tally() == {event: 1}


def test_noise_has_the_declared_size_and_two_rounds_differ() -> None:
    examples = as_store((torch.zeros(1, 1_000_000),))
    room = Vault(examples, randomness=Randomness.from_seed(0), ledger=Ledger(), allowance=Planned({Gaussian(1.5): 2}))
    values = []
    for number in range(2):
        with room.round(number):
            sealed = room.ask(Total(sensitivity=0.1), room.draw(Everyone(), RoundSettings(1, 1, 1.0, 1.0)))
            values.append(room.release(sealed, GaussianNoise(1.5)))
    for value in values:
        assert value.std().item() == pytest.approx(0.15, rel=0.005)
        assert abs(value.mean().item()) < 5 * 0.15 / 1000
    assert abs(torch.corrcoef(torch.stack(values))[0, 1]) < 5 / 1000


def test_fingerprint_tells_datasets_apart_but_not_what_is_in_them() -> None:
    one, same, other = vault({}), vault({}), vault({}, data=2.0)
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()
