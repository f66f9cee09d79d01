"""A model belongs to one run: what was moved, wrapped, frozen or given to another is refused by name."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent.errors import ModelError, ReticentError, SettingError

Pair = tuple[Tensor, Tensor]
SELECTIVE = rt.methods.dpsur(noise_multiplier=2.0, validation_batch_size=20)


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 2)
        self.head = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.conv(x.reshape(-1, 1, 2, 2)).flatten(1))


def a_run(blobs: Pair, model: nn.Module | None = None, **settings: object) -> rt.Run:
    model = Small() if model is None else model
    chosen = {
        "optimizer": torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1, momentum=0.9),
        "method": SELECTIVE,
        "batch_size": 20,
        "rounds": 9,
        "delta": 1e-5,
        "seed": 0,
    } | settings
    return rt.Run(model, chosen.pop("optimizer"), blobs, **chosen)


def other_layout(run: rt.Run, _blobs: Pair) -> None:
    run.model.to(memory_format=torch.channels_last)


def other_storage(run: rt.Run, _blobs: Pair) -> None:
    run.model.head.weight.data = run.model.head.weight.data.clone()


def other_parameter(run: rt.Run, _blobs: Pair) -> None:
    run.model.head.weight = nn.Parameter(run.model.head.weight.detach().clone())


def assigned(run: rt.Run, _blobs: Pair) -> None:
    run.model.load_state_dict(Small().state_dict(), assign=True)


def other_type(run: rt.Run, _blobs: Pair) -> None:
    run.model.double()


def second_run(run: rt.Run, blobs: Pair) -> None:
    a_run(blobs, run.model, initial=run)


@pytest.mark.parametrize(
    "act",
    [other_layout, other_storage, other_parameter, assigned, other_type, second_run],
    ids=lambda act: act.__name__,
)
def test_a_model_that_left_its_place_is_refused(blobs: Pair, act: Callable[[rt.Run, Pair], None]) -> None:
    run = a_run(blobs)
    run.step()
    act(run, blobs)
    with pytest.raises(ModelError, match="no longer where the run put it"):
        run.step()


def test_loading_weights_in_place_is_fine(blobs: Pair) -> None:
    run = a_run(blobs)
    run.step()
    run.model.load_state_dict(Small().state_dict())
    run.step()


def test_freezing_and_unfreezing_is_refused(blobs: Pair) -> None:
    run = a_run(blobs)
    run.model.head.bias.requires_grad_(False)
    with pytest.raises(ModelError, match=r"'head.bias' was frozen"):
        run.step()
    model = Small()
    model.conv.requires_grad_(False)
    run = a_run(blobs, model)
    model.conv.bias.requires_grad_(True)
    with pytest.raises(ModelError, match=r"'conv.bias' was unfrozen"):
        run.step()


def test_an_optimizer_of_something_else_is_refused(blobs: Pair) -> None:
    other = Small()
    with pytest.raises(SettingError, match=r"does not hold the trainable parameter 'conv\.weight'"):
        a_run(blobs, optimizer=torch.optim.SGD(other.parameters(), lr=0.1))
    model = Small()
    with pytest.raises(SettingError, match=r"'conv\.weight'"):
        a_run(blobs, model, optimizer=torch.optim.SGD(model.head.parameters(), lr=0.1))
    both = [*model.parameters(), *other.parameters()]
    with pytest.raises(SettingError, match="not the model's"):
        a_run(blobs, model, optimizer=torch.optim.SGD(both, lr=0.1))
    model.conv.requires_grad_(False)
    a_run(blobs, model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1)).step()


class DistributedDataParallel(nn.Module):  # the real one needs a group of processes: tests/ranks has it
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x)


def test_wrappers_that_divide_the_work_are_refused(blobs: Pair) -> None:
    for wrapped in (nn.Sequential(DistributedDataParallel(Small())), nn.DataParallel(Small())):
        with pytest.raises(ModelError, match="divides the work by itself"):
            a_run(blobs, wrapped)


def test_a_model_is_taken_out_of_its_wrapper(blobs: Pair) -> None:
    model = Small()
    wrapped = DistributedDataParallel(model)
    run = a_run(blobs, wrapped, method=rt.methods.dpsgd(noise_multiplier=1.0))
    before = model.head.weight.clone()
    run.step()
    assert run.model is model
    assert not torch.equal(wrapped.module.head.weight, before)


def test_hooks_that_would_see_hidden_candidates_are_refused(blobs: Pair) -> None:
    model = Small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_post_hook(lambda *_: None)
    with pytest.raises(SettingError, match="step post-hook, which would see candidates"):
        a_run(blobs, model, optimizer=optimizer)
    a_run(blobs, model, optimizer=optimizer, method=rt.methods.dpsgd(noise_multiplier=1.0)).step()


class Notes(torch.optim.SGD):
    """Keeps what a roll-back does not know of."""


def test_optimizers_of_others_are_named_where_candidates_are_hidden(blobs: Pair) -> None:
    model = Small()
    for kind, named in ((Notes, True), (torch.optim.SGD, False)):
        run = a_run(blobs, model, optimizer=kind(model.parameters(), lr=0.1))
        assert any("rests on the promise of Notes" in said for said in run.guarantee().assumptions) == named
    plain = rt.methods.dpsgd(noise_multiplier=1.0)
    seen = a_run(blobs, model, optimizer=Notes(model.parameters(), lr=0.1), method=plain)
    assert not any("Notes" in said for said in seen.guarantee().assumptions), "everything that it sees is paid for"


def test_a_copied_model_is_another_model(blobs: Pair) -> None:
    run = a_run(blobs)
    run.step()
    twin = copy.deepcopy(run.model)
    run.step()
    assert isinstance(twin, Small)


def test_a_filter_that_lets_nothing_out_is_no_finished_run(blobs: Pair) -> None:
    """A run of no rounds promised everything and had done nothing."""
    method = rt.methods.dpagd(splits=1, choices=3)
    tight = rt.Budget(0.001, 1e-5)
    with pytest.raises(ReticentError):
        list(a_run(blobs, method=method, budget=tight, delta=None))
