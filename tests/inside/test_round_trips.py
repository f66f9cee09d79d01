"""Round trips: how often a step waits for its device, or reads numbers from it, so that none creeps in unseen.

Without an accelerator: the step runs on the processor with noise made as an accelerator makes it, and what would wait
there is counted. Each method has its limit, however deep the model: is a factor of any matrix too short to be squared,
and are the norms finite (all read at once), the smallest weight, is the sum finite, and was the model changed.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
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
READ = 4
"""All doubts about norms together, the smallest weight, a finite sum; and the guard's comparison of the parameters."""
JUDGED = 2
"""The test is one number more, and the guard looks at the model once more."""
PLANNED = {"budget": rt.Budget(3.0, 1e-5)}

LIMITS: dict[str, tuple[int, int, dict[str, Any]]] = {
    # method: waits, vectors taken to the host (what is sealed for each line of the ledger), what else the run is told
    "dpsgd": (READ, 1, {}),
    "dpadam": (READ, 1, {}),
    "dpis": (READ - 1 + MATRICES, 2, PLANNED),  # its weights may be so small that each matrix is asked; no finite sum
    "dpsign_sgd": (READ, 1, {}),
    "dpsign_adam": (READ, 1, {}),
    "dpsur": (READ + JUDGED, 1, {}),
    "pd_sgd": (READ, 2, {}),
    "sa_dpsgd": (READ + JUDGED, 2, {}),
    "auto_s": (READ, 1, {}),
    "balls_in_bins": (READ, 2, {}),  # whose turn it is is kept on the host
    "band_mf": (READ + 2, 2, {}),  # so is this, and what matrix and round it was
    "blt": (READ + 2, 2, {}),
    "disk": (READ, 1, {}),
    "doppler": (READ, 1, {}),
    "dpagd": (READ + 2, 2, PLANNED),  # the choice, and the guard once more, if the first step that is tried helps
    "fixed_size": (READ, 1, {}),
    "layer_clip": (READ + MATRICES - 1, 1, {}),  # a smallest weight for each layer
    "noise_decay": (READ, 1, {}),
    "quantile_clip": (READ + 1, 1, {}),  # how many norms are below the bound
    "truncated": (READ, 1, {}),
}
AT_ONCE = {"class_means", "least_squares"}
"""One release is their whole run: they have no step to speak of."""


def test_every_method_has_its_limit() -> None:
    assert {*LIMITS, *AT_ONCE} == {*rt.methods.names()}


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


def made(name: str) -> rt.Run:
    *_, said = LIMITS[name]
    method: Method = getattr(rt.methods, name)(**{} if said or name == "pd_sgd" else {"noise_multiplier": 1.0})
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    examples = torch.randn(300, 8), torch.randint(3, (300,))
    return rt.Run(model, optimizer, examples, method=method, batch_size=30, rounds=50, seed=0, **said)


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.filterwarnings("ignore::reticent.errors.PrivacyWarning")
def test_a_step_waits_no_more_often_than_stated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lattice, "made_there", lambda _device: True)
    monkeypatch.setattr(sameness, "_FEW", 2**60)  # only a processor compares memory by numpy
    waits, taken, _ = LIMITS[name]
    run = made(name)
    for _ in range(3):
        run.step()
    with taken_to_the_host(monkeypatch) as read, Waits() as waited:
        run.step()
    assert sum(waited.seen.values()) + read.pop("tolist", 0) <= waits, (waited.seen, read)
    assert sum(read.values()) <= taken, read


def test_more_layers_are_no_more_waits() -> None:
    """What is read of norms and weights is read once for all parameters."""
    from reticent.gradients import norms_and_sum

    def waits(depth: int) -> int:
        model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(depth)))
        ask: dict[str, Any] = {"model": model, "per_example_loss": lambda m, x: m(x).sum(1), "batch": torch.randn(6, 4)}
        norms_and_sum(**ask, weigh=lambda norms: (1 / norms).clamp(max=1))
        with Waits() as waited:
            norms_and_sum(**ask, weigh=lambda norms: (1 / norms).clamp(max=1))
        return sum(waited.seen.values())

    assert waits(8) == waits(2)


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
