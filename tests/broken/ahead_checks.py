"""Fast checks that fetching ahead changes nothing: each mutant of ahead_mutants.py must make one of them fail."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from reticent.inside.ahead import Ahead, Fetched
from reticent.inside.columns import Columns
from reticent.inside.store import Mapped
from reticent.methods import dpsgd
from reticent.run import Run

GENERATOR = torch.Generator().manual_seed(0)
EXAMPLES = torch.randn(120, 3, generator=GENERATOR), torch.arange(120) % 2


def went(examples: Any) -> tuple[Tensor, list[Any]]:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    settings: dict[str, Any] = {"method": dpsgd(noise_multiplier=1.0), "batch_size": 30, "delta": 1e-5, "seed": 0}
    run = Run(model, torch.optim.SGD(model.parameters(), lr=0.5), examples, rounds=3, **settings)
    for _ in run:
        pass
    return torch.cat([part.detach().flatten() for part in model.parameters()]), list(run.ledger)


def the_same_is_released_and_charged() -> None:
    """Weights to the last digit, and every line of the ledger with its seal."""
    (one, ledger), (other, charged) = went(EXAMPLES), went(Ahead(EXAMPLES, 1))
    assert torch.equal(one, other)
    assert ledger == charged


class Failing(Columns):
    """Fails once, as a worker does that is lost."""

    failed = False

    def take(self, index: np.ndarray) -> Any:
        if not self.failed:
            self.failed = True
            raise OSError("lost")
        return super().take(index)


def what_fails_ahead_is_fetched_again() -> None:
    """Nobody hears of it: it may be a record's doing."""
    store = Fetched(Failing(EXAMPLES), 1)
    store.expect(np.arange(5), 0, 0)
    try:
        found = store.take(np.arange(5))[0]
    except OSError as error:
        raise AssertionError("a record told that it is there") from error
    assert torch.equal(found, EXAMPLES[0][:5])


def nobody_who_fetches_is_forked() -> None:
    """A forked process would hold all that is in memory, the key among it."""
    pool = Fetched(Mapped([*zip(*EXAMPLES, strict=True)]), 1)._started()  # type: ignore[arg-type]
    assert isinstance(pool, ProcessPoolExecutor)
    assert pool._mp_context.get_start_method() != "fork"  # type: ignore[attr-defined]


CHECKS: list[Callable[[], None]] = [
    the_same_is_released_and_charged,
    what_fails_ahead_is_fetched_again,
    nobody_who_fetches_is_forked,
]
