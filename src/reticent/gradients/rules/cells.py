"""Recurrent cells over whole sequences, both directions at once, with the gradients of every gate kept.

Arrays are [directions, steps, examples, features]; the backward direction reads the sequence turned round.
Where `alive` is 0 an example has ended, or not begun: its state is carried on.
"""

# ruff: noqa: ARG002, ARG003 - the cells share one signature

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from reticent.gradients.scratch import empty

_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input


class Gates(NamedTuple):
    """Gradients of all gates, as the input and as the state enter them, and of the first states."""

    inputs: Tensor
    states: Tensor
    first: tuple[Tensor, ...]


class Cell(ABC):
    """Runs forward when made, over gates that hold the input's part already; `states` are all the h, first to last."""

    gates: ClassVar[int]

    def __init__(self, gates: Tensor, weight: Tensor, bias: Tensor, first: tuple[Tensor, ...], alive: Tensor | None):
        directions, self.steps, n, width = gates.shape
        self.weight, self.bias, self.alive = weight, bias, alive
        self.values = gates.view(directions, self.steps, n, self.gates, width // self.gates)
        self.states = empty((directions, self.steps + 1, n, width // self.gates), gates)
        self.states[:, 0] = first[0]
        self.forward(first)

    @classmethod
    def entering(cls, values: Tensor) -> Tensor:
        """Give weights as this cell wants them on the way to its gates."""
        return values

    @classmethod
    def entering_bias(cls, bias: Tensor, state_bias: Tensor) -> Tensor:
        """Give the bias that enters the gates together with the input."""
        return cls.entering(bias + state_bias)

    def last(self) -> tuple[Tensor, ...]:
        """Give the states after the last step."""
        return (self.states[:, -1],)

    def before(self, state: Tensor, gates: Tensor, outgoing: Tensor, t: int) -> Tensor:
        """The gradient of the state before step t: its own, through the gates, and past them where one took no part."""
        before = torch.baddbmm(outgoing[:, t - 1], gates, self.weight) if t else torch.bmm(gates, self.weight)
        return before if self.alive is None else before.addcmul_(state, 1 - self.alive[:, t])

    @abstractmethod
    def forward(self, first: tuple[Tensor, ...]) -> None:
        """Fill `states`."""

    @abstractmethod
    def backward(self, outgoing: Tensor, last: tuple[Tensor, ...]) -> Gates:
        """Fold every gate's derivative into one factor, for all steps at once, then walk back through the steps."""


class Lstm(Cell):
    """i, f, o by sigmoid and g by tanh; c' = f c + i g; h' = o tanh(c').

    tanh x is taken as 2 sigmoid(2x) - 1, since torch's sigmoid is three times as fast; the gates of g come doubled.
    """

    gates = 4

    @classmethod
    def entering(cls, values: Tensor) -> Tensor:
        copy = values.clone()
        copy.chunk(4, dim=-2 if values.ndim > 1 else 0)[2].mul_(2)
        return copy

    def forward(self, first: tuple[Tensor, ...]) -> None:
        self.memory = empty(self.states.shape, self.states)
        self.bent = empty(self.values[:, :, :, 0].shape, self.values)
        self.memory[:, 0] = first[1]
        weight, alive = self.entering(self.weight).mT, self.alive
        states, memories, now = self.states.unbind(1), self.memory.unbind(1), self.values.flatten(3).unbind(1)
        i, f, g, o = (gate.unbind(1) for gate in self.values.unbind(3))
        for t, bent in enumerate(self.bent.unbind(1)):
            now[t].baddbmm_(states[t], weight).sigmoid_()
            memory = torch.mul(f[t], memories[t], out=memories[t + 1]).sub_(i[t]).addcmul_(i[t], g[t], value=2)
            torch.mul(memory, 2, out=bent).sigmoid_().mul_(2).sub_(1)
            torch.mul(o[t], bent, out=states[t + 1])
            if alive is not None:
                carry(self.memory, t, alive)
                carry(self.states, t, alive)
        self.values[:, :, :, 2].mul_(2).sub_(1)

    def last(self) -> tuple[Tensor, ...]:
        return self.states[:, -1], self.memory[:, -1]

    def backward(self, outgoing: Tensor, last: tuple[Tensor, ...]) -> Gates:
        i, f, g, o = self.values.unbind(3)
        forget = empty(self.bent.shape, self.bent).copy_(f)
        through = _tanh_backward(o, self.bent, grad_input=empty(self.bent.shape, self.bent))
        # Each factor takes the place of its gate, which nobody needs any more.
        _sigmoid_backward(self.bent, o, grad_input=o)
        _sigmoid_backward(self.memory[:, :-1], f, grad_input=f)
        of_i = _sigmoid_backward(g, i, grad_input=empty(self.bent.shape, self.bent, brief=1))
        _tanh_backward(i, g, grad_input=g)
        i.copy_(of_i)
        if self.alive is not None:
            self.values.mul_(self.alive[..., None])
            through.mul_(self.alive)
            forget = torch.where(self.alive > 0, forget, 1)
        return self._walk_back(self.values, through.unbind(1), forget.unbind(1), outgoing, last)

    def _walk_back(
        self,
        factors: Tensor,
        through: Sequence[Tensor],
        forget: Sequence[Tensor],
        outgoing: Tensor,
        last: tuple[Tensor, ...],
    ) -> Gates:
        flat = factors.flatten(3)
        ours, by_memory, by_state = flat.unbind(1), factors[..., :3, :].unbind(1), factors[..., 3, :].unbind(1)
        state, memory = outgoing[:, -1] + last[0], last[1].clone()
        for t in reversed(range(self.steps)):
            memory.addcmul_(state, through[t])
            by_memory[t].mul_(memory[:, :, None])
            by_state[t].mul_(state)
            memory.mul_(forget[t])
            state = self.before(state, ours[t], outgoing, t)
        return Gates(flat, flat, (state, memory))


class Gru(Cell):
    """r, z by sigmoid; n = tanh(n_x + r (W h + b)); h' = n + z (h - n)."""

    gates = 3

    @classmethod
    def entering_bias(cls, bias: Tensor, state_bias: Tensor) -> Tensor:
        return bias  # the other one is multiplied by a gate first

    def forward(self, first: tuple[Tensor, ...]) -> None:
        self.recurrent = empty(self.values[:, :, :, 0].shape, self.values)
        turned, bias = self.weight.mT, self.bias[:, None]
        for t in range(self.steps):
            state, new = self.states[:, t], self.values[:, t, :, 2]
            entering = torch.baddbmm(bias, state, turned).view_as(self.values[:, t])
            both = self.values[:, t, :, :2].add_(entering[:, :, :2]).sigmoid_()
            self.recurrent[:, t] = entering[:, :, 2]
            new.addcmul_(both[:, :, 0], entering[:, :, 2]).tanh_()
            torch.lerp(new, state, both[:, :, 1], out=self.states[:, t + 1])
            if self.alive is not None:
                carry(self.states, t, self.alive)

    def backward(self, outgoing: Tensor, last: tuple[Tensor, ...]) -> Gates:
        r, z, new = self.values.unbind(3)
        factors, stay = torch.empty_like(self.values), z
        into = factors.unbind(3)
        _tanh_backward(1 - z, new, grad_input=into[2])
        _sigmoid_backward(self.states[:, :-1] - new, z, grad_input=into[1])
        _sigmoid_backward(into[2] * self.recurrent, r, grad_input=into[0])
        if self.alive is not None:
            factors.mul_(self.alive[..., None])
            stay = z * self.alive
        entering = factors.clone()
        entering[..., 2, :].mul_(r)
        state = outgoing[:, -1] + last[0]
        for t in reversed(range(self.steps)):
            factors[:, t].mul_(state[:, :, None])
            entering[:, t].mul_(state[:, :, None])
            state = self.before(state, entering[:, t].flatten(2), outgoing, t).addcmul_(state, stay[:, t])
        return Gates(factors.flatten(3), entering.flatten(3), (state,))


class PlainCell(Cell):
    """h' = tanh(W x + U h + b)."""

    gates = 1

    def forward(self, first: tuple[Tensor, ...]) -> None:
        turned = self.weight.mT
        for t in range(self.steps):
            now = torch.baddbmm(self.values[:, t, :, 0], self.states[:, t], turned, out=self.states[:, t + 1])
            self.bend(now)
            if self.alive is not None:
                carry(self.states, t, self.alive)

    def bend(self, values: Tensor) -> None:
        """Apply the activation in place."""
        values.tanh_()

    def slopes(self) -> Tensor:
        """Give the activation's derivative at every step."""
        return 1 - self.states[:, 1:].square()

    def backward(self, outgoing: Tensor, last: tuple[Tensor, ...]) -> Gates:
        factors = self.slopes()
        if self.alive is not None:
            factors = factors * self.alive
        state = outgoing[:, -1] + last[0]
        for t in reversed(range(self.steps)):
            factors[:, t].mul_(state)
            state = self.before(state, factors[:, t], outgoing, t)
        return Gates(factors, factors, (state,))


class Rectified(PlainCell):
    """h' = relu(W x + U h + b)."""

    def bend(self, values: Tensor) -> None:
        values.relu_()

    def slopes(self) -> Tensor:
        return (self.states[:, 1:] > 0).to(self.states.dtype)


def carry(states: Tensor, t: int, alive: Tensor) -> None:
    """Keep the state of examples that take no part in step t."""
    states[:, t + 1] = torch.where(alive[:, t] > 0, states[:, t + 1], states[:, t])
