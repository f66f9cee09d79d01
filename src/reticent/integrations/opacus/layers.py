"""Layers that Opacus has to rewrite: here torch's own are trained as they are."""

from torch import nn

__all__ = ["DPGRU", "DPLSTM", "DPRNN", "DPMultiheadAttention"]

DPGRU = nn.GRU
"""torch's own."""
DPLSTM = nn.LSTM
"""torch's own."""
DPRNN = nn.RNN
"""torch's own."""
DPMultiheadAttention = nn.MultiheadAttention
"""torch's own."""
