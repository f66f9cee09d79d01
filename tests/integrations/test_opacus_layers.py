"""Clip norms for each tensor, as Opacus has them: cut by themselves, noise by the root of the sum of their squares."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from reticent.errors import SettingError
from reticent.integrations.opacus import PrivacyEngine

RNG = torch.Generator().manual_seed(3)
X, Y = torch.randn(60, 4, generator=RNG), torch.arange(60) % 3


def net(width: int = 5) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 3))


def private(model: nn.Module, engine: Any = None, *, lr: float = 0.7, **settings: Any) -> Any:
    loader = DataLoader(TensorDataset(X, Y), batch_size=15, shuffle=True)
    said = {"noise_multiplier": 1e-7, "clipping": "per_layer", **settings}
    trained = [p for p in model.parameters() if p.requires_grad]
    sgd = torch.optim.SGD(reversed(trained) if said.pop("turned", False) else trained, lr=lr)
    engine = PrivacyEngine(accountant="rdp") if engine is None else engine
    return engine.make_private(module=model, optimizer=sgd, data_loader=loader, **said)


def epoch(model: Any, optimizer: Any, loader: Any, *, most: int = 4) -> list[tuple[Tensor, Tensor]]:
    shown = []
    for _, (x, y) in zip(range(most), loader, strict=False):
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        shown.append((torch.tensor(x.tolist()), torch.tensor(y.tolist())))
        optimizer.step()
    return shown


@pytest.mark.parametrize(
    ("said", "norms"),
    [
        ({"max_grad_norm": [0.05, 0.1, 0.2, 0.3]}, [0.05, 0.1, 0.2, 0.3]),
        ({"max_grad_norm": (0.3, 0.2, 0.1, 0.05), "turned": True}, [0.05, 0.1, 0.2, 0.3]),
        ({"max_grad_norm": 0.4}, [0.2] * 4),
    ],
    ids=["list", "in the order of the optimizer", "one number"],
)
def test_each_tensor_is_cut_to_its_own_norm(said: dict[str, Any], norms: list[float]) -> None:
    before, model = net(), net()
    wrapped, optimizer, loader = private(model, **said)
    assert optimizer.max_grad_norm == pytest.approx(math.hypot(*norms))
    [(x, y)] = epoch(wrapped, optimizer, loader, most=1)
    sums = [torch.zeros_like(p) for p in before.parameters()]
    for row in range(len(x)):
        loss = functional.cross_entropy(before(x[row : row + 1]), y[row : row + 1])
        found = torch.autograd.grad(loss, list(before.parameters()))
        for total, gradient, norm in zip(sums, found, norms, strict=True):
            total += gradient * min(1.0, norm / float(gradient.norm()))
    for now, then, total in zip(model.parameters(), before.parameters(), sums, strict=True):
        torch.testing.assert_close(now, then - 0.7 * total / 15, atol=1e-5, rtol=1e-4)


def test_noise_is_for_all_tensors_together() -> None:
    norms, noise = [0.3, 0.4, 1.2, 0.0], 2.0  # together 1.3
    before, model = net(4000), net(4000)
    generator = torch.Generator().manual_seed(1)
    made = private(model, max_grad_norm=norms, noise_multiplier=noise, noise_generator=generator, lr=15.0)
    epoch(*made, most=1)
    for place, (now, then) in enumerate(zip(model.parameters(), before.parameters(), strict=True)):
        if now.numel() > 1000:
            scale = float((now - then).detach().std())
            assert scale == pytest.approx(noise * 1.3, rel=0.05), f"tensor {place}"


def test_frozen_tensors_need_no_norm_and_what_is_missing_is_said() -> None:
    model = net()
    model[0].requires_grad_(requires_grad=False)
    epoch(*private(model, max_grad_norm=[0.1, 0.1]))
    wrong = {
        "has 3 clip norms, and the optimizer holds 4 trained tensors": {"max_grad_norm": [1.0] * 3},
        "say clipping='per_layer'": {"clipping": "flat", "max_grad_norm": [1.0] * 4},
        "0 or more and finite": {"max_grad_norm": [1.0, 1.0, -1.0, 1.0]},
        "all clip norms are 0": {"max_grad_norm": [0.0] * 4},
    }
    for says, settings in wrong.items():
        with pytest.raises(SettingError, match=says):
            private(net(), **settings)
    optimizer = private(net(), max_grad_norm=[1.0] * 4)[1]
    with pytest.raises(SettingError, match="fixed before the first step"):
        optimizer.max_grad_norms = [9.0] * 4


@pytest.mark.filterwarnings("ignore")  # of Opacus itself
def test_epsilon_and_noise_are_those_of_opacus() -> None:
    opacus = pytest.importorskip("opacus", reason="opacus is not installed")
    engines = PrivacyEngine(accountant="rdp"), opacus.PrivacyEngine(accountant="rdp")
    scales = []
    for engine in engines:
        norms = [0.3, 0.4, 1.2, 0.1]
        model, optimizer, loader = private(net(), engine, max_grad_norm=norms, noise_multiplier=1.1)
        epoch(model, optimizer, loader)
        scales.append(optimizer.noise_multiplier * optimizer.max_grad_norm)
    ours, theirs = engines
    assert ours.accountant.history == theirs.accountant.history == [(1.1, 0.25, 4)]
    assert ours.get_epsilon(1e-5) == pytest.approx(theirs.get_epsilon(1e-5), abs=1e-6)
    assert scales[0] == pytest.approx(scales[1], rel=1e-6)
