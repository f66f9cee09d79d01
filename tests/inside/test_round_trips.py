"""Round trips: how often a step waits for its device, or reads numbers from it, so that none creeps in unseen.

Without an accelerator: the step runs on the processor with noise made as an accelerator makes it, and what would wait
there is counted. Each method has its limit: for all of them a number for each matrix (is a factor too short to be
squared?), and once whether the norms and the sum are finite, the smallest weight and whether the model was changed.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import reticent as rt
from reticent.inside import lattice
from reticent.inside.guarding import sameness
from reticent.methods import Method

MATRICES = 3
GRADIENT = MATRICES + 3 + 1
"""Finite norms, the smallest weight, a finite sum; and the guard's one comparison of the parameters."""

LIMITS: dict[str, tuple[Callable[[], Method], int, int]] = {
    # method: waits, and tensors taken to the host: what is sealed for each line of the ledger
    "dpsgd": (lambda: rt.methods.dpsgd(noise_multiplier=1.0), GRADIENT, 1),
    "auto_s": (lambda: rt.methods.auto_s(noise_multiplier=1.0), GRADIENT, 1),
    # the test is one number more, and the guard looks at the model once more
    "dpsur": (lambda: rt.methods.dpsur(noise_multiplier=1.0), GRADIENT + 2, 1),
    "sa_dpsgd": (lambda: rt.methods.sa_dpsgd(noise_multiplier=1.0), GRADIENT + 2, 2),
}


class Waits(TorchDispatchMode):
    """Counts what would wait for a device: a number or a size that is read from it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name().removeprefix("aten::")
        masked = name in ("index.Tensor", "index_put", "index_put_") and any(
            isinstance(index, Tensor) and index.dtype == torch.bool for index in args[1]
        )
        if masked or name in ("_local_scalar_dense", "equal", "nonzero", "masked_select", "_unique2"):
            self.seen[name] += 1
        return func(*args, **(kwargs or {}))


@contextmanager
def taken_to_the_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Counts the tensors whose memory is read by others than torch."""
    seen: Counter[str] = Counter()
    with monkeypatch.context() as patched:
        for name in ("numpy", "tolist"):
            right = getattr(Tensor, name)

            def watched(self: Tensor, *args: Any, _right: Any = right, _name: str = name, **kwargs: Any) -> Any:
                seen[_name] += 1
                return _right(self, *args, **kwargs)

            patched.setattr(Tensor, name, watched)
        yield seen


def made(method: Method) -> rt.Run:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    examples = torch.randn(300, 8), torch.randint(3, (300,))
    return rt.Run(model, optimizer, examples, method=method, batch_size=30, rounds=50, seed=0)


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.filterwarnings("ignore::reticent.errors.PrivacyWarning")
def test_a_step_waits_no_more_often_than_stated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lattice, "made_there", lambda _device: True)
    monkeypatch.setattr(sameness, "_FEW", 2**60)  # only a processor compares memory by numpy
    make, waits, taken = LIMITS[name]
    run = made(make())
    for _ in range(3):
        run.step()
    with taken_to_the_host(monkeypatch) as read, Waits() as waited:
        run.step()
    assert sum(waited.seen.values()) <= waits, waited.seen
    assert sum(read.values()) <= taken, read


def test_more_layers_are_not_more_than_one_wait_each() -> None:
    """What is read of the weights is read once for all parameters."""
    from reticent.gradients import norms_and_sum

    def waits(depth: int) -> int:
        model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(depth)))
        ask: dict[str, Any] = {"model": model, "per_example_loss": lambda m, x: m(x).sum(1), "batch": torch.randn(6, 4)}
        norms_and_sum(**ask, weigh=lambda norms: (1 / norms).clamp(max=1))
        with Waits() as waited:
            norms_and_sum(**ask, weigh=lambda norms: (1 / norms).clamp(max=1))
        return sum(waited.seen.values())

    assert waits(8) - waits(2) == 6


def test_the_smallest_weight_is_read_again_when_weights_change() -> None:
    from reticent.gradients.forms.outer import smallest

    weights = torch.tensor([0.5, 1.0])
    assert smallest(weights) == smallest(weights) == 0.5
    weights.mul_(1e-30)
    assert smallest(weights) == pytest.approx(5e-31)
    assert smallest(weights[1:]) == pytest.approx(1e-30)


def test_a_compiled_model_takes_the_fast_path(caplog: pytest.LogCaptureFixture) -> None:
    """`torch.compile` may fuse a model for its owner; a private step follows the model that was compiled."""
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    compiled = torch.compile(model, backend="eager")
    examples = torch.randn(60, 4), torch.arange(60) % 3
    made = [
        rt.Run(
            one,
            torch.optim.SGD(one.parameters(), lr=0.1),
            examples,
            method=rt.methods.dpsgd(noise_multiplier=1.0),
            batch_size=20,
            rounds=3,
            seed=0,
        )
        for one in (copy.deepcopy(model), compiled)
    ]
    for run in made:
        list(run)
    assert "general path" not in caplog.text
    for ours, theirs in zip(made[0].model.parameters(), made[1].model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
