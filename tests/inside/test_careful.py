"""An example that cannot be read or evaluated counts for nothing: no round fails where it is drawn, nothing tells."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent.errors import DataError
from reticent.methods import Method

Pair = tuple[Tensor, Tensor]
METHODS: dict[str, Method] = {
    "dpsgd": rt.methods.dpsgd(noise_multiplier=1.0),
    "auto_s": rt.methods.auto_s(noise_multiplier=1.0),
    "dpsur": rt.methods.dpsur(noise_multiplier=2.0, validation_batch_size=100),
    "dpis": rt.methods.dpis(norms="refresh"),
}


def sealed(examples: object, method: Method, rounds: int = 2, net: nn.Module | None = None) -> list[Tensor]:
    """What was sealed in some rounds that draw everybody, or nearly."""
    torch.manual_seed(0)
    layer = nn.Linear(4, 2)
    if net is not None:
        net.load_state_dict({f"layer.{name}": part for name, part in layer.state_dict().items()})
    net = layer if net is None else net
    count = len(examples[0]) if isinstance(examples, tuple) else len(examples)  # type: ignore[arg-type]
    run = rt.Run(
        net,
        torch.optim.SGD(net.parameters(), lr=0.1),
        examples,
        method=method,
        batch_size=count,
        rounds=rounds,
        budget=rt.Budget(8.0, 1e-5) if method.name == "dpis" else None,
        delta=None if method.name == "dpis" else 1e-5,
        seed=0,
    )
    probe = run.watch()
    for _ in range(rounds):
        run.step()
    return [opening.sealed for opening in probe.openings]


@pytest.mark.parametrize("name", METHODS)
def test_a_bad_label_stops_no_round(blobs: Pair, name: str) -> None:
    x, y = blobs
    bad = y.clone()
    bad[17] = 7
    assert all(part.isfinite().all() for part in sealed((x, bad), METHODS[name]))


def test_a_bad_label_counts_for_nothing(blobs: Pair) -> None:
    x, y = blobs
    bad = y.clone()
    bad[17] = 7
    without = torch.arange(200) != 17
    one, two = sealed((x, bad), METHODS["dpsgd"], 1)[0], sealed((x[without], y[without]), METHODS["dpsgd"], 1)[0]
    torch.testing.assert_close(one, two)


def test_nobody_hears_of_a_bad_label(blobs: Pair, caplog: pytest.LogCaptureFixture) -> None:
    x, y = blobs
    bad = y.clone()
    bad[17] = 7
    for labels in (y, bad):
        sealed((x, labels), METHODS["dpsgd"])
    assert not caplog.text


class Halfway(nn.Module):
    """Notes what it is at, and takes it back when it is done: where a record fails in between, the note stays."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.depth, self.busy = 0, []

    def forward(self, x: Tensor) -> Tensor:
        self.current, self.depth = x, self.depth + 1
        self.busy.append(x)
        if bool((x == 777.0).any()):
            raise ValueError("a record that cannot be evaluated")
        self.busy.pop()
        del self.current
        self.depth -= 1
        return self.layer(x)


@pytest.mark.parametrize("place", [0, 17, 199])
def test_a_record_that_fails_halfway_counts_for_nothing(blobs: Pair, place: int) -> None:
    x, y = blobs[0].clone(), blobs[1]
    x[place] = 777.0
    without = torch.arange(200) != place
    one, two = (sealed(pair, METHODS["dpsgd"], 2, Halfway()) for pair in ((x, y), (x[without], y[without])))
    torch.testing.assert_close(one[0], two[0])


def test_a_candidate_is_judged_without_the_record_that_fails_halfway(blobs: Pair) -> None:
    x, y = blobs[0].clone(), blobs[1]
    x[17] = 777.0
    net = Halfway()
    assert all(part.isfinite().all() for part in sealed((x, y), METHODS["dpsur"], 2, net))
    assert (net.depth, net.busy, hasattr(net, "current")) == (0, [], False)


class Torn(torch.utils.data.Dataset[Pair]):
    """A dataset one of whose files cannot be read."""

    def __init__(self, pair: Pair, torn: int | None):
        self.pair, self.torn = pair, torn

    def __len__(self) -> int:
        return len(self.pair[0])

    def __getitem__(self, number: int) -> Pair:
        if number == self.torn:
            raise OSError("the file of record 17 is torn")
        return self.pair[0][number], self.pair[1][number]


def test_a_record_that_cannot_be_read_counts_for_nothing(blobs: Pair) -> None:
    x, y = blobs
    without = torch.arange(200) != 17
    one = sealed(Torn(blobs, 17), METHODS["dpsgd"], 1)[0]
    two = sealed((x[without], y[without]), METHODS["dpsgd"], 1)[0]
    torch.testing.assert_close(one, two)


def test_labels_are_looked_at_only_when_asked(blobs: Pair) -> None:
    x, y = blobs
    bad = y.clone()
    bad[17] = 7
    settings = {"epochs": 1, "batch_size": 50, "epsilon": 3.0, "seed": 0}
    rt.fit(nn.Linear(4, 2), (x, bad), **settings)
    with pytest.raises(DataError, match="labels must be whole numbers from 0 to 1"):
        rt.fit(nn.Linear(4, 2), (x, bad), check_data=True, **settings)


class Doubled(torch.utils.data.Dataset[Pair]):
    """A dataset that keeps its arrays as x and y, and does something to each example on the way out."""

    def __init__(self, pair: Pair):
        self.x, self.y = pair

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, number: int) -> Pair:
        return 2 * self.x[number], self.y[number]


def test_what_a_dataset_does_to_an_example_is_done(blobs: Pair) -> None:
    x, y = blobs
    one, two = sealed(Doubled(blobs), METHODS["dpsgd"], 1)[0], sealed((2 * x, y), METHODS["dpsgd"], 1)[0]
    torch.testing.assert_close(one, two)


def test_text_is_refused() -> None:
    class Texts(torch.utils.data.Dataset[tuple[str, int]]):
        def __len__(self) -> int:
            return 10

        def __getitem__(self, number: int) -> tuple[str, int]:
            return "a sentence", number % 2

    with pytest.raises(DataError, match="is text"):
        rt.fit(nn.Linear(4, 2), Texts(), epochs=1, batch_size=5, epsilon=3.0)


def test_no_pass_is_made_for_no_rows(blobs: Pair) -> None:
    class Flattens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            assert len(x) > 0, "nobody was drawn, and yet the model is asked"
            return self.layer(x.view(x.size(0), -1))

    net = Flattens()
    run = rt.Run(
        net,
        torch.optim.SGD(net.parameters(), lr=0.1),
        blobs,
        method=rt.methods.dpsur(noise_multiplier=2.0, validation_batch_size=0.01),
        batch_size=0.01,
        rounds=20,
        delta=1e-5,
        seed=0,
    )
    assert len(list(run)) == 20
    assert run.ledger.tally() == run.plan.tally()


class Odd(torch.utils.data.Dataset[Pair]):
    """A dataset one of whose records is of another kind."""

    def __init__(self, pair: Pair, record: object):
        self.pair, self.record = pair, record

    def __len__(self) -> int:
        return len(self.pair[0])

    def __getitem__(self, number: int) -> object:
        return self.record if number == 17 else (self.pair[0][number], self.pair[1][number])


@pytest.mark.parametrize(
    ("record", "counts"),
    [
        ((torch.zeros(4), float("nan")), True),  # a label that makes all labels of its batch floats
        ((torch.zeros(4, dtype=torch.float64), 0), True),  # and so for the inputs
        ((torch.zeros(5), 0), False),
        ((torch.zeros(4), 0, 0), False),
        ((torch.zeros(4), "text"), False),
        ((torch.zeros(4), None), False),
    ],
    ids=["label not a number", "other type", "other shape", "other length", "text", "none"],
)
def test_a_record_of_another_kind_changes_no_other(blobs: Pair, record: object, counts: bool) -> None:
    x, y = blobs
    without = torch.arange(200) != 17
    one = sealed(Odd(blobs, record), METHODS["dpsgd"], 1)[0]
    two = sealed((x[without], y[without]), METHODS["dpsgd"], 1)[0]
    moved = float((one - two).norm())
    assert moved <= 1.0 + 1e-4, "the others were changed, too"
    assert counts or moved <= 1e-4


def test_a_record_of_another_kind_is_no_error_in_a_folder(blobs: Pair, tmp_path: object) -> None:
    for record in ((torch.zeros(5), 0), (torch.zeros(4), None)):
        net = nn.Linear(4, 2)
        run = rt.Run(
            net,
            torch.optim.SGD(net.parameters(), lr=0.1),
            Odd(blobs, record),
            method=METHODS["dpsur"],
            batch_size=100,
            rounds=2,
            delta=1e-5,
            folder=f"{tmp_path}/{len(record[0])}",
        )
        assert len(list(run)) == 2


def test_that_the_first_record_gives_the_form_is_said_and_others_are_looked_for_when_asked(blobs: Pair) -> None:
    """Whoever comes first decides which records count: so every guarantee takes the form for public."""
    settings = {"epochs": 1, "batch_size": 50, "epsilon": 3.0, "seed": 0, "loss": "cross_entropy"}
    ragged = [(torch.rand(4 + number % 2), number % 2) for number in range(200)]
    net = nn.Sequential(nn.AdaptiveAvgPool1d(4), nn.Linear(4, 2))
    trained = rt.fit(net, ragged, **settings)
    assert any("types and shapes, is public" in said for said in trained.guarantee.assumptions)
    with pytest.raises(DataError, match="100 of 200 records cannot be read or have other shapes"):
        rt.fit(nn.Sequential(nn.AdaptiveAvgPool1d(4), nn.Linear(4, 2)), ragged, check_data=True, **settings)
