"""Random compositions of layers: shapes, strides, kinds, frozen subsets, tied and reused modules."""

from __future__ import annotations

import torch
from gradient_oracle import clip, double, error, loop, loss_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from reticent.gradients import norms_and_sum
from reticent.gradients.planning import plan_of
from reticent.gradients.task import LossTask

activations = st.sampled_from([nn.Tanh, nn.Softplus, nn.SiLU, nn.Identity])


class Shortcut(nn.Module):
    """Adds what a module gives to what it gets, once or twice."""

    def __init__(self, inner, times):
        super().__init__()
        self.inner, self.times = inner, times

    def forward(self, x):
        for _ in range(self.times):
            x = x + self.inner(x)
        return x


class First(nn.Module):
    """The outputs of a recurrent layer, without its states."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0]


@st.composite
def convolutions(draw, channels, size):
    kernel = draw(st.integers(1, min(3, size)))
    stride, padding = draw(st.integers(1, 2)), draw(st.integers(0, kernel - 1))
    groups = draw(st.sampled_from([g for g in (1, 2) if channels % g == 0]))
    out = draw(st.sampled_from([2, 4]))
    bias = draw(st.booleans())
    layer = nn.Conv2d(channels, out, kernel, stride=stride, padding=padding, groups=groups, bias=bias)
    return layer, out, (size + 2 * padding - kernel) // stride + 1


@st.composite
def image_models(draw):
    channels, size = draw(st.integers(1, 3)), draw(st.integers(3, 6))
    shape, layers = (channels, size, size), []
    for _ in range(draw(st.integers(1, 3))):
        layer, channels, size = draw(convolutions(channels, size))
        layers += [layer, draw(activations)()]
        if size > 1 and draw(st.booleans()):
            layers.append(nn.GroupNorm(draw(st.sampled_from([1, 2])), channels))
        if draw(st.booleans()):
            same = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), draw(activations)())
            layers.append(Shortcut(same, draw(st.integers(1, 2))))
    layers += [nn.Flatten(), nn.Linear(channels * size * size, draw(st.integers(1, 3)))]
    return nn.Sequential(*layers), torch.randn(draw(st.integers(1, 4)), *shape)


@st.composite
def sequence_models(draw):
    words, width, length = 7, draw(st.sampled_from([4, 8])), draw(st.integers(1, 5))
    table, layers = nn.Embedding(words, width, padding_idx=draw(st.sampled_from([None, 0]))), []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["linear", "norm", "lstm", "gru", "attention", "shortcut"]))
        layers.append(
            {
                "linear": lambda: nn.Sequential(nn.Linear(width, width), nn.Tanh()),
                "norm": lambda: nn.LayerNorm(width),
                "lstm": lambda: First(nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)),
                "gru": lambda: First(nn.GRU(width, width, batch_first=True)),
                "attention": lambda: nn.TransformerEncoderLayer(width, 2, 6, dropout=0.0, batch_first=True),
                "shortcut": lambda: Shortcut(nn.Linear(width, width), draw(st.integers(1, 2))),
            }[kind]()
        )
    out = nn.Linear(width, words, bias=draw(st.booleans()))
    if draw(st.booleans()):
        out.weight = table.weight
    return nn.Sequential(table, *layers, out), torch.randint(words, (draw(st.integers(1, 4)), length))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(image_models(), sequence_models()), st.data())
def test_any_composition_is_exact(case, data):
    model, batch = double(*case)
    parameters = list(model.parameters())
    frozen = data.draw(st.sets(st.integers(0, len(parameters) - 1), max_size=len(parameters) - 1))
    for i in frozen:
        parameters[i].requires_grad_(False)
    limit = data.draw(st.sampled_from([None, 1, 2]))
    found = norms_and_sum(model, loss_of, batch, clip, max_physical_batch_size=limit)
    assert plan_of(LossTask.of(model, loss_of), batch) is not None
    expected = loop(model, loss_of, batch)
    norms = expected[0]
    assert ((found[0] - norms).abs() <= 1e-9 * norms + 1e-12).all()
    scale = max(1e-3, max(float(value.abs().max()) for value in expected[1].values()))
    for name, value in expected[1].items():
        assert (found[1][name] - value).abs().max() <= 1e-9 * scale


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(image_models(), sequence_models()))
def test_removing_an_example_moves_the_sum_by_at_most_the_bound(case):
    model, batch = double(*case)
    whole = norms_and_sum(model, loss_of, batch, clip)[1]
    for i in range(len(batch)):
        others = torch.cat([batch[:i], batch[i + 1 :]])
        without = norms_and_sum(model, loss_of, others, clip)[1]
        moved = sum((whole[name] - without[name]).square().sum() for name in whole)
        assert moved.sqrt() <= 0.5 * (1 + 1e-9)


def test_the_measure_of_error_notices_one_wrong_number():
    model, x = double(nn.Linear(3, 2), torch.randn(4, 3))
    norms, sums = norms_and_sum(model, loss_of, x, clip)
    wrong = {name: value.clone() for name, value in sums.items()}
    wrong["bias"][0] *= 1 + 1e-7
    assert error((norms, wrong), loop(model, loss_of, x)) > 1e-9
