"""Rules for single recurrent steps, as LSTMCell, GRUCell and RNNCell take them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from reticent.gradients.following import Function
from reticent.gradients.registry import rule
from reticent.gradients.rules.linear import linear
from reticent.gradients.uses import Use

Bias = Tensor | None


@rule(torch.lstm_cell, located=False)
def lstm_cell(
    use: Use,
    input: Tensor,
    hx: tuple[Tensor, Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Bias = None,
    b_hh: Bias = None,
) -> tuple[Tensor, Tensor]:
    """c' = f c + i g; h' = o tanh(c')."""
    gates = linear(use, input, w_ih, b_ih) + linear(use, hx[0], w_hh, b_hh)
    i, f, g, o = gates.chunk(4, dim=1)
    memory = f.sigmoid() * hx[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * memory.tanh(), memory


@rule(torch.gru_cell, located=False)
def gru_cell(
    use: Use, input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Bias = None, b_hh: Bias = None
) -> Tensor:
    """n = tanh(n_x + r n_h); h' = n + z (h - n)."""
    r, z, new = linear(use, input, w_ih, b_ih).chunk(3, dim=1)
    r_state, z_state, new_state = linear(use, hx, w_hh, b_hh).chunk(3, dim=1)
    new = (new + (r + r_state).sigmoid() * new_state).tanh()
    return new + (z + z_state).sigmoid() * (hx - new)


def _plain(function: Function, bend: Callable[[Tensor], Tensor]) -> None:
    @rule(function, located=False)
    def run(
        use: Use, input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Bias = None, b_hh: Bias = None
    ) -> Tensor:
        return bend(linear(use, input, w_ih, b_ih) + linear(use, hx, w_hh, b_hh))


_plain(torch.rnn_tanh_cell, torch.tanh)
_plain(torch.rnn_relu_cell, torch.relu)
