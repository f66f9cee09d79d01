"""Every rule gives what a loop over single examples gives, without falling back to the general path."""

from __future__ import annotations

import logging

import pytest
import torch
from gradient_oracle import assert_exact
from torch import nn
from torch.nn import functional

from reticent.gradients import norms_and_sum
from reticent.models.presence import PresenceLinear
from reticent.models.residual import StandardisedConv2d

N = 4
torch.manual_seed(0)


def images(channels, *space):
    return torch.randn(N, channels, *space)


class Function(nn.Module):
    """A model from parameters and a function of them and the input."""

    def __init__(self, forward, **shapes):
        super().__init__()
        self.own = nn.ParameterDict({name: nn.Parameter(torch.randn(shape) * 0.5) for name, shape in shapes.items()})
        self._forward = forward

    def forward(self, *inputs):
        return self._forward(self.own, *inputs)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 5))

    def forward(self, x):
        x = x + self.inner(x)
        return x + self.inner(x).relu()


class TiedTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.out = nn.Linear(4, 7, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        return self.out(self.embed(tokens).tanh())


class Attend(nn.Module):
    def __init__(self, **settings):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, **settings)

    def forward(self, query, key, value):
        return self.attention(query, key, value)[0]


class SelfAttend(nn.Module):
    def __init__(self, need_weights, mask=None, **settings):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True, **settings)
        self.need_weights, self.mask = need_weights, mask

    def forward(self, x):
        padding = torch.zeros(x.shape[:2], dtype=torch.bool)
        padding[:, -1] = True
        if self.mask is not None and self.mask.is_floating_point():
            padding = torch.zeros_like(padding, dtype=self.mask.dtype).masked_fill(padding, -9.0)
        found = self.attention(x, x, x, key_padding_mask=padding, attn_mask=self.mask, need_weights=self.need_weights)
        return found[0]


class TimeMajor(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        out = self.inner(x.transpose(0, 1))
        return (out[0] if isinstance(out, tuple) else out).transpose(0, 1)


class Merged(nn.Module):
    """Examples and positions in one axis, example after example or turn about."""

    def __init__(self, inner, minor):
        super().__init__()
        self.inner, self.minor = inner, minor

    def forward(self, x):
        x = x.transpose(0, 1) if self.minor else x
        out = self.inner(x.flatten(0, 1)).view(*x.shape[:2], -1)
        return out.transpose(0, 1) if self.minor else out


class Packed(nn.Module):
    def __init__(self, inner, enforce_sorted=False):
        super().__init__()
        self.inner, self.enforce_sorted = inner, enforce_sorted

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(
            x, lengths.cpu(), batch_first=True, enforce_sorted=self.enforce_sorted
        )
        out, last = self.inner(packed)
        out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])
        last = last[0] if isinstance(last, tuple) else last
        return torch.cat([out.flatten(1), last.transpose(0, 1).flatten(1)], 1)


class Steps(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        state = None
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
        return state


class Positions(nn.Module):
    """Places that all examples share, as GPT-2 has them, and a token that each example gets a copy of."""

    def __init__(self, copy):
        super().__init__()
        self.words, self.places = nn.Embedding(9, 4), nn.Embedding(6, 4)
        self.norm, self.start = nn.LayerNorm(4), nn.Parameter(torch.randn(1, 1, 4))
        self.copy = copy

    def forward(self, tokens):
        x = self.words(tokens) + self.norm(self.places(torch.arange(tokens.shape[1])))
        start = self.start.expand(len(x), -1, -1) if self.copy == "expand" else self.start.repeat(len(x), 1, 1)
        return torch.cat([start, x.tanh()], 1) * torch.linspace(1, 2, x.shape[1] + 1)[:, None]


class Kinds(nn.Module):
    """Tables of which all examples look up the same rows, one of them more than once."""

    def __init__(self, look_up):
        super().__init__()
        self.words, self.kinds = nn.Embedding(9, 4), nn.Embedding(3, 4, padding_idx=1)
        self.look_up = look_up

    def forward(self, tokens):
        x = self.words(tokens)
        if self.look_up == "time first":
            return (x.transpose(0, 1) + self.kinds(torch.arange(x.shape[1])[:, None] % 3)).transpose(0, 1)
        if self.look_up == "merged":
            return (x.flatten(0, 1) + self.kinds((torch.arange(x.shape[1]) % 3).repeat(len(x)))).view(x.shape)
        if self.look_up == "expanded":
            return x + self.kinds(torch.arange(x.shape[1])[None] % 3).expand_as(x)
        if self.look_up == "tied":
            return x + self.words(torch.arange(x.shape[1]))
        if self.look_up == "one for all":
            return x + self.kinds(torch.tensor(2))
        return x + self.kinds(torch.arange(x.shape[1]).expand(x.shape[:2]).contiguous() % 3)


class AtRest(nn.Module):
    """Batch normalisation with statistics that are kept."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(3).eval()
        self.norm.running_mean.uniform_()

    def forward(self, x):
        self.norm.eval()
        return self.norm(x)


class Bags(nn.Module):
    """All words in one list, and where each bag begins."""

    def __init__(self, bags, last, **settings):
        super().__init__()
        self.inner, self.bags, self.last = nn.EmbeddingBag(5, 3, include_last_offset=last, **settings), bags, last

    def forward(self, tokens):
        starts = torch.arange(len(tokens) * self.bags + self.last) * (tokens.shape[1] // self.bags)
        return self.inner(tokens.flatten(), starts).view(len(tokens), -1)


class Lora(nn.Module):
    def __init__(self, merged):
        super().__init__()
        self.base = nn.Linear(6, 5).requires_grad_(False)
        self.down, self.up = nn.Parameter(torch.randn(2, 6)), nn.Parameter(torch.randn(5, 2))
        self.merged = merged

    def forward(self, x):
        if self.merged:
            return functional.linear(x, self.base.weight + self.up @ self.down, self.base.bias)
        return self.base(x) + x @ self.down.T @ self.up.T


def weight_norm(module):
    return nn.utils.parametrizations.weight_norm(module)


class Inplace(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(2, 3, 3), nn.Conv2d(3, 2, 2)
        self.scale = nn.Parameter(torch.tensor([0.5, 2.0]).view(2, 1, 1))

    def forward(self, x):
        x = functional.relu_(self.one(x))
        x = self.two(x)
        x += 1
        x *= self.scale
        return x.tanh_()


LINEAR = {
    "linear": (nn.Linear(5, 3), torch.randn(N, 5)),
    "linear without bias": (nn.Linear(5, 3, bias=False), torch.randn(N, 5)),
    "linear, few positions (Gram)": (nn.Linear(40, 30), torch.randn(N, 3, 40)),
    "linear, many positions (written out)": (nn.Linear(3, 2), torch.randn(N, 9, 3)),
    "linear, two axes of positions": (nn.Linear(3, 2), torch.randn(N, 2, 3, 3)),
    "linear, time first": (TimeMajor(nn.Linear(3, 2)), torch.randn(N, 6, 3)),
    "linear, time first and as many steps as probed examples": (TimeMajor(nn.Linear(3, 2)), torch.randn(N, 3, 3)),
    "linear, merged axes": (Merged(nn.Linear(3, 2), minor=False), torch.randn(N, 6, 3)),
    "linear, merged axes turn about": (Merged(nn.Linear(3, 2), minor=True), torch.randn(N, 6, 3)),
    "addmm": (Function(lambda p, x: torch.addmm(p.b, x, p.w), w=(5, 3), b=(3,)), torch.randn(N, 5)),
    "matrix on the right": (Function(lambda p, x: x @ p.w, w=(5, 3)), torch.randn(N, 2, 5)),
    "matrix on the left": (Function(lambda p, x: p.w @ x, w=(3, 5)), torch.randn(N, 5, 2)),
    "matrix on the left of columns": (Function(lambda p, x: (p.w @ x.T).T, w=(3, 5)), torch.randn(N, 5)),
    "vector on the right": (Function(lambda p, x: x @ p.v, v=(5,)), torch.randn(N, 2, 5)),
    "transposed matrix": (Function(lambda p, x: x @ p.w.T, w=(3, 5)), torch.randn(N, 2, 5)),
    "matrices for each head": (Function(lambda p, x: x @ p.w, w=(2, 5, 3)), torch.randn(N, 2, 4, 5)),
    "einsum": (Function(lambda p, x: torch.einsum("nhi,hij->nhj", x, p.w), w=(2, 5, 3)), torch.randn(N, 2, 5)),
    "LoRA": (Lora(merged=False), torch.randn(N, 6)),
    "LoRA merged": (Lora(merged=True), torch.randn(N, 6)),
    "weight norm": (weight_norm(nn.Linear(5, 3)), torch.randn(N, 5)),
    "tied embedding and output": (TiedTable(), torch.randint(7, (N, 3))),
    "module used twice, residual": (Residual(), torch.randn(N, 5)),
}
CONVOLUTION = {
    "1d": (nn.Conv1d(2, 3, 3, stride=2), images(2, 9)),
    "2d": (nn.Conv2d(2, 3, 3), images(2, 5, 6)),
    "2d, one channel": (nn.Sequential(nn.Conv2d(1, 4, 4, 2, 1), nn.MaxPool2d(2, 1)), images(1, 8, 8)),
    "2d, strides and padding": (nn.Conv2d(2, 3, (3, 2), stride=(2, 1), padding=(1, 2)), images(2, 5, 6)),
    "2d, dilation": (nn.Conv2d(2, 3, 2, dilation=2), images(2, 5, 5)),
    "2d, groups": (nn.Conv2d(4, 6, 3, groups=2), images(4, 5, 5)),
    "2d, depthwise": (nn.Conv2d(4, 8, 3, groups=4, padding=1), images(4, 5, 5)),
    "2d, depthwise, strides": (nn.Conv2d(4, 4, 3, groups=4, stride=2, padding=(0, 1)), images(4, 6, 7)),
    "2d, depthwise, dilation": (nn.Conv2d(4, 8, 2, groups=4, dilation=2, padding="same"), images(4, 5, 6)),
    "2d, depthwise, one place": (nn.Conv2d(4, 8, 2, groups=4, dilation=2, padding=1), images(4, 1, 1)),
    "1d, depthwise": (nn.Conv1d(3, 3, 4, groups=3, stride=3), images(3, 9)),
    "3d, depthwise": (nn.Conv3d(2, 2, 2, groups=2), images(2, 3, 4, 3)),
    "transposed, depthwise": (nn.ConvTranspose2d(3, 3, 3, groups=3, stride=2, padding=1), images(3, 4, 4)),
    "depthwise, frames": (
        Merged(nn.Sequential(nn.Conv2d(2, 4, 2, groups=2), nn.Flatten()), minor=False),
        torch.randn(N, 3, 2, 3, 3),
    ),
    "2d, same": (nn.Conv2d(2, 3, 4, padding="same"), images(2, 5, 5)),
    "2d, valid": (nn.Conv2d(2, 3, 2, padding="valid"), images(2, 4, 4)),
    "2d, circular": (nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), images(2, 5, 5)),
    "2d, reflected": (nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"), images(2, 5, 5)),
    "2d, one by one": (nn.Conv2d(3, 4, 1), images(3, 4, 4)),
    "2d, wide with few places": (nn.Conv2d(24, 40, 3, padding=1), images(24, 3, 3)),
    "2d, several": (nn.Sequential(nn.Conv2d(2, 4, 3), nn.Tanh(), nn.Conv2d(4, 2, 2, bias=False)), images(2, 6, 6)),
    "2d, frames": (Merged(nn.Sequential(nn.Conv2d(2, 3, 2), nn.Flatten()), minor=False), torch.randn(N, 3, 2, 3, 3)),
    "3d": (nn.Conv3d(2, 3, 2, padding=1), images(2, 3, 4, 3)),
    "transposed 1d": (nn.ConvTranspose1d(2, 3, 3, stride=2, output_padding=1), images(2, 4)),
    "transposed 2d": (nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1), images(2, 4, 4)),
    "transposed 2d, groups": (nn.ConvTranspose2d(4, 6, 2, groups=2, dilation=2), images(4, 4, 4)),
    "transposed 3d": (nn.ConvTranspose3d(2, 3, 2), images(2, 2, 3, 2)),
    "weight norm": (weight_norm(nn.Conv2d(2, 3, 3)), images(2, 4, 4)),
    "standardised": (
        nn.Sequential(StandardisedConv2d(2, 3, 3), nn.Tanh(), StandardisedConv2d(3, 2, 2)),
        images(2, 5, 5),
    ),
    "changed in place": (Inplace(), images(2, 6, 6)),
}
NORMALISATION = {
    "layer norm": (nn.LayerNorm(4), torch.randn(N, 3, 4)),
    "layer norm of two axes": (nn.LayerNorm((3, 4)), torch.randn(N, 2, 3, 4)),
    "layer norm without bias": (nn.LayerNorm(4, bias=False), torch.randn(N, 4)),
    "RMS norm": (nn.RMSNorm(4), torch.randn(N, 3, 4)),
    "group norm": (nn.Sequential(nn.Conv2d(2, 6, 2), nn.GroupNorm(3, 6)), images(2, 5, 5)),
    "group norm of vectors": (nn.GroupNorm(2, 6), torch.randn(N, 6)),
    "instance norm": (nn.InstanceNorm2d(3, affine=True), images(3, 4, 4)),
    "used twice": (nn.Sequential(*[nn.GroupNorm(2, 4)] * 2), images(4, 3, 3)),
    "batch norm at rest": (AtRest(), images(3, 4, 4)),
}
TABLES = {
    "embedding": (nn.Embedding(5, 3), torch.randint(5, (N, 6))),
    "embedding with padding": (nn.Embedding(5, 3, padding_idx=0), torch.randint(5, (N, 6))),
    "embedding of one token": (nn.Embedding(5, 3), torch.randint(5, (N,))),
    "embedding, sparse": (nn.Embedding(5, 3, sparse=True), torch.randint(5, (N, 6))),
    "bag, mean": (nn.EmbeddingBag(5, 3), torch.randint(5, (N, 6))),
    "bag, sum": (nn.EmbeddingBag(5, 3, mode="sum"), torch.randint(5, (N, 6))),
    "bag of shares": (PresenceLinear(5, 3), torch.tensor([[0, 0, 1, 5], [1, 2, 3, 4], [0, 0, 0, 0], [0, 2, 4, 5]])),
    "bags in one list": (Bags(1, last=False), torch.randint(5, (N, 6))),
    "several bags in one list": (Bags(3, last=True, mode="sum", padding_idx=2), torch.randint(5, (N, 6))),
    "bag with padding": (nn.EmbeddingBag(5, 3, padding_idx=1), torch.randint(5, (N, 6))),
    "places and expanded token": (Positions("expand"), torch.randint(9, (N, 5))),
    "places and repeated token": (Positions("repeat"), torch.randint(9, (N, 5))),
    "by brackets": (Function(lambda p, i: p.w[i].tanh(), w=(5, 3)), torch.randint(-5, 5, (N, 6))),
    "by brackets, one each": (Function(lambda p, i: p.w[i], w=(5, 3)), torch.randint(5, (N,))),
    "by name": (
        Function(lambda p, i: p.w.index_select(0, i.flatten()).view(len(i), 18), w=(5, 3)),
        torch.randint(5, (N, 6)),
    ),
    **{
        f"the same rows for all, {how}": (Kinds(how), torch.randint(9, (N, 5)))
        for how in ("for each", "time first", "merged", "tied", "expanded", "one for all")
    },
}
RECURRENT = {
    "LSTM": (nn.LSTM(3, 4, batch_first=True), torch.randn(N, 5, 3)),
    "LSTM, two layers, both directions": (
        nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True),
        torch.randn(N, 5, 3),
    ),
    "LSTM without bias, time first": (TimeMajor(nn.LSTM(3, 4, bias=False)), torch.randn(N, 5, 3)),
    "LSTM after a layer": (nn.Sequential(nn.Linear(3, 3), nn.LSTM(3, 4, batch_first=True)), torch.randn(N, 5, 3)),
    "GRU": (nn.GRU(3, 4, batch_first=True), torch.randn(N, 5, 3)),
    "GRU, two layers, both directions": (nn.GRU(3, 4, 2, batch_first=True, bidirectional=True), torch.randn(N, 5, 3)),
    "RNN": (nn.RNN(3, 4, batch_first=True), torch.randn(N, 5, 3)),
    "RNN, ReLU, two layers": (nn.RNN(3, 4, 2, nonlinearity="relu", batch_first=True), torch.randn(N, 5, 3)),
    "LSTM cell": (Steps(nn.LSTMCell(3, 4)), torch.randn(N, 5, 3)),
    "GRU cell": (Steps(nn.GRUCell(3, 4)), torch.randn(N, 5, 3)),
    "RNN cell": (Steps(nn.RNNCell(3, 4)), torch.randn(N, 5, 3)),
}
LENGTHS = torch.tensor([2, 5, 1, 4])
PACKED = {
    "LSTM": (Packed(nn.LSTM(3, 4, batch_first=True)), (torch.randn(N, 5, 3), LENGTHS)),
    "LSTM, two layers, both directions": (
        Packed(nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True)),
        (torch.randn(N, 5, 3), LENGTHS),
    ),
    "GRU, both directions": (
        Packed(nn.GRU(3, 4, batch_first=True, bidirectional=True)),
        (torch.randn(N, 5, 3), LENGTHS),
    ),
    "RNN, sorted already": (
        Packed(nn.RNN(3, 4, batch_first=True), enforce_sorted=True),
        (torch.randn(N, 5, 3), LENGTHS.sort(descending=True).values),
    ),
}
ATTENTION = {
    "self, weights asked for": (SelfAttend(need_weights=True), torch.randn(N, 5, 8)),
    "self, fused, with mask": (SelfAttend(False, mask=torch.ones(5, 5).triu(1).bool()), torch.randn(N, 5, 8)),
    "self, mask of numbers": (SelfAttend(False, mask=torch.randn(5, 5)), torch.randn(N, 5, 8)),
    "cross": (Attend(batch_first=True), (torch.randn(N, 3, 8), torch.randn(N, 5, 8), torch.randn(N, 5, 8))),
    "other widths": (
        Attend(batch_first=True, kdim=5, vdim=6),
        (torch.randn(N, 3, 8), torch.randn(N, 5, 5), torch.randn(N, 5, 6)),
    ),
    "encoder layer": (
        nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=True),
        torch.randn(N, 5, 8),
    ),
    "encoder layer, time first": (TimeMajor(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)), torch.randn(N, 5, 8)),
    "one more key and value": (SelfAttend(False, add_bias_kv=True), torch.randn(N, 5, 8)),
    "one more key, and zeros": (
        SelfAttend(True, mask=torch.ones(5, 5).triu(1).bool(), add_bias_kv=True, add_zero_attn=True),
        torch.randn(N, 5, 8),
    ),
    "zeros to attend to": (
        Attend(batch_first=True, add_zero_attn=True, kdim=5, vdim=6),
        (torch.randn(N, 3, 8), torch.randn(N, 5, 5), torch.randn(N, 5, 6)),
    ),
    "bias for each pair": (
        Function(lambda p, x: functional.scaled_dot_product_attention(x, x, x, p.w), w=(1, 2, 5, 5)),
        torch.randn(N, 2, 5, 3),
    ),
    "bias from a table": (
        Function(
            lambda p, x: functional.scaled_dot_product_attention(
                x, x, x, attn_mask=functional.embedding(torch.arange(25).view(5, 5) % 7, p.w).permute(2, 0, 1)[None]
            ),
            w=(7, 2),
        ),
        torch.randn(N, 2, 5, 3),
    ),
    "bias in windows": (
        Function(
            lambda p, x: functional.scaled_dot_product_attention(
                x.flatten(0, 1), x.flatten(0, 1), x.flatten(0, 1), p.w
            ).view(x.shape),
            w=(1, 2, 5, 5),
        ),
        torch.randn(N, 3, 2, 5, 3),
    ),
    "learned queries": (
        Function(lambda p, x: functional.scaled_dot_product_attention(p.w, x, x, None, 0.0), w=(1, 2, 4, 3)),
        torch.randn(N, 2, 5, 3),
    ),
    "decoder layer": (
        nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        (torch.randn(N, 3, 8), torch.randn(N, 5, 8)),
    ),
}
BROADCAST = {
    "PReLU": (nn.PReLU(), torch.randn(N, 3, 4)),
    "PReLU, one slope a channel": (nn.PReLU(3), torch.randn(N, 3, 4)),
    "scale and shift": (Function(lambda p, x: x * p.w + p.b, w=(4,), b=(3, 1)), torch.randn(N, 3, 4)),
    "reflected": (Function(lambda p, x: 1 - p.w / (2 + x.tanh()) - p.b, w=(4,), b=()), torch.randn(N, 4)),
    "through exp": (Function(lambda p, x: x * p.w.exp(), w=(4,)), torch.randn(N, 4)),
    "power": (Function(lambda p, x: (1 + x.square()) ** p.w, w=(4,)), torch.randn(N, 4)),
    "part of a parameter": (Function(lambda p, x: x + p.w[:, : x.shape[1]], w=(1, 7, 4)), torch.randn(N, 3, 4)),
    "temperature": (Function(lambda p, x: (x / p.w).softmax(1), w=(1,)), torch.randn(N, 4)),
    "where": (Function(lambda p, x: torch.where(x > 0, x, p.w), w=(4,)), torch.randn(N, 4)),
}
ALL = {
    f"{family}: {name}": case
    for family, cases in {
        "linear": LINEAR, "convolution": CONVOLUTION, "norm": NORMALISATION, "table": TABLES,
        "recurrent": RECURRENT, "packed": PACKED, "attention": ATTENTION, "broadcast": BROADCAST,
    }.items()
    for name, case in cases.items()
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@pytest.mark.parametrize("name", ALL)
def test_a_rule_gives_what_single_examples_give(name, caplog):
    with caplog.at_level(logging.WARNING):
        assert_exact(*ALL[name])
    assert not caplog.records


def test_rows_by_the_place_in_the_batch_have_no_rule(caplog):
    """What an example looks up would depend on who stands before it."""

    class Ranked(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(9, 3)

        def forward(self, x):
            return x + self.table(torch.arange(len(x)))

    norms_and_sum(Ranked(), lambda model, x: model(x).square().sum(1), torch.randn(N, 3), lambda norms: 1 / norms)
    assert "not the same for all examples" in caplog.text
