"""Rules for LSTM, GRU and plain recurrent layers: several layers, both directions, packed sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from reticent.gradients.following import Function
from reticent.gradients.forms import Dense, Outer
from reticent.gradients.registry import rule
from reticent.gradients.rules.cells import Cell, Gru, Lstm, PlainCell, Rectified
from reticent.gradients.scratch import empty
from reticent.gradients.uses import Forms, Use

# Sequences are turned for a few examples at a time, so that they are still in the cache when they are multiplied.
CACHED = 2**19


class _Context(Protocol):
    """What a layer keeps until its gradient comes by."""

    run: _Run
    needs_input_grad: tuple[bool, ...]


class Layer(torch.autograd.Function):
    """One layer over [steps, examples, features]; gives its outputs and last states."""

    @staticmethod
    def forward(ctx: _Context, x: Tensor, _anchor: Tensor, run: _Run, *first: Tensor) -> tuple[Tensor, ...]:
        ctx.run = run
        return run.forward(x.detach(), tuple(state.detach() for state in first))

    @staticmethod
    def backward(ctx: _Context, *outgoing: Tensor) -> tuple[Tensor | None, ...]:
        x, first = ctx.run.backward(outgoing[0], outgoing[1:], ctx.needs_input_grad[0])
        return x, None, None, *first


class _Run:
    """A layer's parameters, and what its forward pass leaves for its backward pass."""

    def __init__(self, use: Use, cell: type[Cell], weights: Sequence[Sequence[Tensor]], alive: Tensor | None):
        self.use, self.kind, self.alive = use, cell, alive
        self.given = weights
        self.from_input, self.from_state, *biases = (use.plain(list(each)) for each in zip(*weights, strict=True))
        zero = [weight.new_zeros(len(weight)) for weight in self.from_input]
        self.biases = biases or [zero, zero]

    def forward(self, x: Tensor, first: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        steps, n, _ = x.shape
        self.inputs = [x.flip(0) if turned else x for turned in range(len(self.given))]
        gates = empty((len(self.given), steps, n, len(self.from_input[0])), x)
        for d, (weight, bias, other) in enumerate(zip(self.from_input, *self.biases, strict=True)):
            weight, bias = self.kind.entering(weight), self.kind.entering_bias(bias, other)
            torch.addmm(bias, self.inputs[d].flatten(0, 1), weight.T, out=gates[d].view(steps * n, -1))
        self.cell = self.kind(gates, torch.stack(self.from_state), torch.stack(self.biases[1]), first, self.alive)
        return _side_by_side(self.cell.states[:, 1:]), *(state.clone() for state in self.cell.last())

    def backward(
        self, outgoing: Tensor, last: tuple[Tensor, ...], needs_input: bool
    ) -> tuple[Tensor | None, tuple[Tensor, ...]]:
        sides = outgoing.chunk(len(self.given), dim=2)
        turned = torch.stack([side.flip(0) if d else side for d, side in enumerate(sides)])
        gates = self.cell.backward(turned, last)
        self.use.collect(self._forms(gates.inputs, gates.states))
        if not needs_input:
            return None, gates.first
        x = torch.zeros_like(self.inputs[0])
        for d, (side, weight) in enumerate(zip(gates.inputs, self.from_input, strict=True)):
            part = (side.flatten(0, 1) @ weight).view_as(x)
            x += part.flip(0) if d else part
        return x, gates.first

    def _forms(self, from_input: Tensor, from_state: Tensor) -> Forms:
        for d, given in enumerate(self.given):
            states = self.cell.states[d, :-1]
            if len(given) > 2:
                bias = Dense(from_input[d].sum(0))
                yield given[2], bias
                yield given[3], bias if from_state is from_input else Dense(from_state[d].sum(0))
            if from_state is from_input:
                yield from _one_product(given, from_input[d], self.inputs[d], states)
            else:
                yield given[0], Outer(_by_example(from_input[d]), _by_example(self.inputs[d]))
                yield given[1], Outer(_by_example(from_state[d]), _by_example(states))


def _one_product(given: Sequence[Tensor], gates: Tensor, inputs: Tensor, states: Tensor) -> Forms:
    """Write out the gradients of both matrices by one product with inputs and states side by side."""
    (steps, n, width), hidden, outputs = inputs.shape, states.shape[2], gates.shape[2]
    at_once = min(n, max(4, CACHED // (steps * (width + hidden + outputs))))
    both = empty((at_once, steps, width + hidden), gates, brief=1)
    turned = empty((at_once, steps, outputs), gates, brief=2)
    written = empty((n, width + hidden, outputs), gates)
    for start in range(0, n, at_once):
        some = slice(start, min(n, start + at_once))
        left, right = both[: some.stop - start], turned[: some.stop - start]
        left[..., :width], left[..., width:] = inputs[:, some].transpose(0, 1), states[:, some].transpose(0, 1)
        torch.bmm(left.mT, right.copy_(gates[:, some].transpose(0, 1)), out=written[some])
    yield given[0], Dense(written[:, :width], _turned)
    yield given[1], Dense(written[:, width:], _turned)


def _turned(written: Tensor) -> Tensor:
    return written.mT


def _side_by_side(states: Tensor) -> Tensor:
    """Both directions in the order of the sequence."""
    return torch.cat([side.flip(0) if turned else side for turned, side in enumerate(states)], dim=2)


def _by_example(steps: Tensor) -> Tensor:
    """Turn [steps, examples, features] to [examples, steps, features]."""
    turned = steps.transpose(0, 1)
    return empty(turned.shape, turned).copy_(turned)


def _layers(
    use: Use,
    cell: type[Cell],
    x: Tensor,
    first: tuple[Tensor, ...],
    weights: Sequence[Tensor],
    biased: bool,
    layers: int,
    dropout: float,
    bidirectional: bool,
    alive: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Run layer after layer over [steps, examples, features]; states are stacked as torch does."""
    directions, each = (2 if bidirectional else 1), (4 if biased else 2)
    if len(weights) != layers * directions * each:
        raise use.refuse("projections have no rule")
    use.expect(weights)
    last = []
    for layer in range(layers):
        sides = [layer * directions + d for d in range(directions)]
        run = _Run(use, cell, [weights[side * each : (side + 1) * each] for side in sides], alive)
        here = slice(sides[0], sides[-1] + 1)
        x, *states = Layer.apply(x, use.anchor, run, *(state[here] for state in first))  # type: ignore[no-untyped-call]
        last.append(states)
        if dropout and layer < layers - 1:
            x = functional.dropout(x, dropout)
    return x, *(torch.cat(states) for states in zip(*last, strict=True))


def _recurrent(function: Function, cell: type[Cell]) -> None:
    @rule(function, located=False)
    def run(use: Use, input: Tensor, *rest: Any) -> tuple[Tensor, ...]:
        if isinstance(rest[2], list):
            return _packed(use, cell, input, *rest)
        hx, weights, biased, layers, dropout, training, bidirectional, batch_first = rest
        if input.ndim != 3:
            raise use.refuse("the input has no axis of examples")
        x = input.transpose(0, 1) if batch_first else input
        shape = (weights, biased, layers, dropout * training, bidirectional)
        y, *last = _layers(use, cell, x.contiguous(), hx if isinstance(hx, tuple) else (hx,), *shape)
        return y.transpose(0, 1) if batch_first else y, *last


def _packed(
    use: Use,
    cell: type[Cell],
    data: Tensor,
    batch_sizes: Tensor,
    hx: Tensor | tuple[Tensor, ...],
    weights: Sequence[Tensor],
    biased: bool,
    layers: int,
    dropout: float,
    training: bool,
    bidirectional: bool,
) -> tuple[Tensor, ...]:
    """Run over padded sequences in the order of the examples, then pack again as it was."""
    order = use.order(data).to(data.device)
    back = order.argsort()
    steps = len(batch_sizes)
    padded, lengths = torch._pad_packed_sequence(data, batch_sizes, False, 0.0, steps)
    alive = (torch.arange(steps)[:, None] < lengths[back.cpu()])[..., None].to(data)
    both = torch.stack([alive, alive.flip(0)]) if bidirectional else alive[None]
    first = tuple(state[:, back] for state in (hx if isinstance(hx, tuple) else (hx,)))
    shape = (weights, biased, layers, dropout * training, bidirectional)
    y, *last = _layers(use, cell, padded[:, back], first, *shape, alive=both)
    packed, _ = torch._pack_padded_sequence(y[:, order], lengths, False)
    return packed, *(state[:, order] for state in last)


_KINDS: list[tuple[Function, type[Cell]]] = [
    (torch.lstm, Lstm), (torch.gru, Gru), (torch.rnn_tanh, PlainCell), (torch.rnn_relu, Rectified)
]  # fmt: skip
for _function, _cell in _KINDS:
    _recurrent(_function, _cell)
