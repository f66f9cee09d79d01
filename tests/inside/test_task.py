"""A task: parameters as one vector, in a precision that holds sums of many gradients."""

import pytest
import torch
from torch import nn

import reticent as rt
from reticent.errors import ModelError
from reticent.inside import Flat


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_refused(dtype):
    """At bfloat16, one of 2,000 examples moved the sum by four times its bound."""
    model = nn.Linear(4, 2).to(dtype)
    with pytest.raises(ModelError, match=r"Call \.float\(\)"):
        rt.fit(model, (torch.randn(20, 4, dtype=dtype), torch.zeros(20).long()), noise_multiplier=1.0, epochs=1)


class Mixed(nn.Module):
    """Parameters in float32, computed with in bfloat16."""

    def __init__(self, by_hand):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.by_hand = nn.Linear(200, 50), by_hand

    def forward(self, x):
        if self.by_hand:
            weight, bias = self.layer.weight.bfloat16(), self.layer.bias.bfloat16()
            return nn.functional.linear(x.bfloat16(), weight, bias).float()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.layer(x).float()


@pytest.mark.parametrize("by_hand", [False, True])
def test_computing_in_half_precision_leaves_the_sum_exact(by_hand):
    torch.manual_seed(0)
    x, y = 1 + 0.1 * torch.randn(300, 200), torch.zeros(300).long()

    def sum_over(count):
        model = Mixed(by_hand)
        run = rt.Run(
            model,
            torch.optim.SGD(model.parameters(), lr=0.1),
            (x[:count], y[:count]),
            method=rt.methods.dpsgd(noise_multiplier=1.0, max_grad_norm=1.0),
            batch_size=count,
            rounds=1,
            seed=0,
        )
        probe = run.watch()
        list(run)
        return probe.openings[0].sealed.double()

    assert float((sum_over(300) - sum_over(299)).norm()) <= 1 + 1e-4


@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_a_lazy_module_is_told_what_to_do() -> None:
    with pytest.raises(ModelError, match=r"'1\.weight'.*lazy.*made-up batch"):
        Flat(nn.Sequential(nn.Tanh(), nn.LazyLinear(2)))
