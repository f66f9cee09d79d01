"""Checkpointed blocks take the rules, and torch's own ways are back afterwards."""

from __future__ import annotations

import threading

import pytest
import torch
import torch.utils.checkpoint as blocks
from gradient_oracle import clip, error, loss_of
from torch import nn

from reticent.gradients import general, norms_and_sum, planning
from reticent.gradients.recomputing import keeps, nothing_recomputed


class Blocks(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.first, self.reentrant = nn.Linear(4, 6), reentrant
        self.inner = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.LayerNorm(6))

    def forward(self, x):
        x = self.first(x)
        if self.reentrant is None:
            return self.inner(self.inner(x))
        x = blocks.checkpoint(self.inner, x, use_reentrant=self.reentrant)
        return blocks.checkpoint(self.inner, x, use_reentrant=self.reentrant)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_blocks_have_rules(reentrant, caplog):
    model, x = Blocks(reentrant).double(), torch.randn(5, 3, 4).double()
    found = norms_and_sum(model, loss_of, x, clip)
    assert not caplog.records
    model.reentrant = None
    whole = norms_and_sum(model, loss_of, x, clip)
    assert error(found, whole) < 1e-9
    task = planning.LossTask.of(model, loss_of)
    written = general.Written(general.by_loop(task, x))
    torch.testing.assert_close(found[0], written.norms())


def test_an_example_that_keeps_too_much_is_taken_alone(monkeypatch, caplog):
    monkeypatch.setattr(planning, "MOST", 100)
    model, x = Blocks(False), torch.randn(5, 3, 4)
    found = norms_and_sum(model, loss_of, x, clip)
    assert "keeps too much" in caplog.text
    model.reentrant = None
    assert error(found, norms_and_sum(model, loss_of, x, clip)) < 1e-5


def test_torchs_own_ways_are_back_and_other_threads_keep_them():
    calls, x = [], torch.ones(3, requires_grad=True)
    before = blocks.CheckpointFunction, blocks._checkpoint_without_reentrant_generator

    def block(x):
        calls.append(1)
        return x.exp()

    def elsewhere():
        for reentrant in (False, True):
            out = blocks.checkpoint(block, x, use_reentrant=reentrant).sum()
            out.backward()

    with nothing_recomputed() as kept:
        assert keeps()
        other = threading.Thread(target=elsewhere)
        other.start()
        other.join()
        assert len(calls) == 4, "each block ran twice, since torch recomputes in the other thread"
        assert not kept.met
        blocks.checkpoint(block, x, use_reentrant=False).sum().backward()
        assert kept.met
        assert len(calls) == 5
    assert (blocks.CheckpointFunction, blocks._checkpoint_without_reentrant_generator) == before
    assert not keeps()


def test_both_paths_take_blocks_of_inputs_alike():
    """Which of them is taken may depend on other examples, so an example's gradient must not depend on the path."""

    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            return self.last(blocks.checkpoint(self.first, x, use_reentrant=True).tanh())

    model, x = First(), torch.randn(5, 4)
    norms, _ = norms_and_sum(model, loss_of, x, clip)
    for path in (general.by_loop, general.by_vmap):
        torch.testing.assert_close(general.Written(path(planning.LossTask.of(model, loss_of), x)).norms(), norms)
