"""The benchmark's own steps can be made: it is not run in the tests, and would break unseen."""

import pytest
import torch
from benchmarks.models import Case
from benchmarks.peers import PEERS
from torch import nn

SMALL = Case(lambda: nn.Sequential(nn.Flatten(), nn.Linear(4, 3)), (4,), 8, classes=3)


@pytest.mark.parametrize("peer", ["sgd", "ours", "ours in a run", "vmap"])
def test_a_peer_that_needs_no_other_package_steps(peer):
    torch.manual_seed(0)
    step = PEERS[peer](SMALL)
    step()
    step()
