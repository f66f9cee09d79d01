"""A dropped trial leaves parameters, optimizer and scheduler bit-equal, however it is left."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer, RMSprop
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler, OneCycleLR, SequentialLR, StepLR

from reticent.inside import Flat
from reticent.outside import Trial

OPTIMIZERS = {
    "sgd": lambda p: SGD(p, lr=0.1),
    "momentum": lambda p: SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: Adam(p, lr=0.1, amsgrad=True),
    "adamw": lambda p: AdamW(p, lr=0.1),
    "rmsprop": lambda p: RMSprop(p, lr=0.1, momentum=0.5, centered=True),
}
SCHEDULERS = {
    "none": lambda o: None,
    "step": lambda o: StepLR(o, 2),
    "cosine": lambda o: CosineAnnealingLR(o, 7),
    "cycle": lambda o: OneCycleLR(o, max_lr=1.0, total_steps=30),
    "sequence": lambda o: SequentialLR(o, [StepLR(o, 1), CosineAnnealingLR(o, 5)], milestones=[3]),
}


def everything(flat: Flat, optimizer: Optimizer, scheduler: LRScheduler | None) -> list[Any]:
    state = optimizer.state_dict()
    return copy.deepcopy([flat.vector, state, scheduler.state_dict() if scheduler else None])


def equal(left: Any, right: Any) -> bool:
    if isinstance(left, Tensor):
        return torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


def make(optimizer: str, scheduler: str) -> tuple[Flat, Optimizer, LRScheduler | None]:
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 2))
    flat = Flat(net)
    if optimizer != "sgd" and scheduler == "cycle" and optimizer == "rmsprop":
        pytest.skip("OneCycleLR wants a beta1 or momentum it may cycle")
    made = OPTIMIZERS[optimizer](net.parameters())
    if scheduler == "cycle" and optimizer == "sgd":
        pytest.skip("OneCycleLR wants a momentum it may cycle")
    return flat, made, SCHEDULERS[scheduler](made)


def move(flat: Flat, optimizer: Optimizer, scheduler: LRScheduler | None) -> None:
    flat.set_grad(torch.randn_like(flat.vector))
    optimizer.step()
    if scheduler is not None:
        scheduler.step()


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("steps_before", [0, 3])
@pytest.mark.filterwarnings("ignore:The epoch parameter:UserWarning")
def test_dropping_restores_every_bit_and_the_future(optimizer: str, scheduler: str, steps_before: int) -> None:
    parts = make(optimizer, scheduler)
    for _ in range(steps_before):
        with Trial(*parts) as trial:
            move(*parts)
            trial.keep()
    before = everything(*parts)
    with Trial(*parts):
        move(*parts)
        assert not torch.equal(parts[0].vector, before[0])
    assert equal(everything(*parts), before)
    torch.manual_seed(5)
    move(*parts)
    after = everything(*parts)
    flat, made, plan = make(optimizer, scheduler)
    flat.vector.copy_(before[0])
    made.load_state_dict(before[1])
    if plan is not None:
        plan.load_state_dict(before[2])
    torch.manual_seed(5)
    move(flat, made, plan)
    assert torch.equal(flat.vector, after[0])


def test_keeping_keeps_and_leaves_no_gradient() -> None:
    flat, optimizer, _ = make("adam", "none")
    before = flat.vector.clone()
    with Trial(flat, optimizer) as trial:
        move(flat, optimizer, None)
        trial.keep()
    assert not torch.equal(flat.vector, before)
    assert all(p.grad is None for group in optimizer.param_groups for p in group["params"])


def test_an_error_after_keeping_still_rolls_back() -> None:
    flat, optimizer, _ = make("momentum", "none")
    before = flat.vector.clone()

    def keep_and_fail() -> None:
        with Trial(flat, optimizer) as trial:
            move(flat, optimizer, None)
            trial.keep()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keep_and_fail()
    assert torch.equal(flat.vector, before)
    assert len(optimizer.state) == 0
