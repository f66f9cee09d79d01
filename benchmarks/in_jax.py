"""The cases written again in JAX, for JAX-Privacy: each must give what the torch model gives before it may race."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.models import Case, Transformer
from benchmarks.peers import CLIP, NOISE, RATE, Absent
from reticent.models import ReviewRnn, WideResNet
from reticent.models.convolutional import PublicNormalise
from reticent.models.residual import GROUPS

try:
    import jax
    import jax.numpy as jnp
    from jax_privacy import clipping
except ImportError:
    jax = None

MICROBATCH = 64
Values = dict[str, Any]
Forward = Callable[[Values, Any], Any]


def step_of(case: Case) -> Callable[[], object]:
    """Build a compiled step, or say why not."""
    if jax is None:
        raise Absent("jax or jax_privacy is not installed")
    model, (x, y) = case.build().eval(), case.examples()
    values = {name: jnp.asarray(p.detach().numpy()) for name, p in model.named_parameters()}
    learned = {name for name, p in model.named_parameters() if p.requires_grad}
    frozen = {name: value for name, value in values.items() if name not in learned}
    forward = forward_of(model)
    agree(model, lambda inputs: forward(values, inputs), x[:2])
    inputs, labels = jnp.asarray(x.numpy()), jnp.asarray(y.numpy())

    def loss(parameters: Values, some: Any, theirs: Any) -> Any:
        logits = forward(parameters | frozen, some)
        return -jax.nn.log_softmax(logits)[jnp.arange(len(theirs)), theirs].mean()

    at_once = min(MICROBATCH, case.batch)
    clipped = clipping.clipped_grad(loss, l2_clip_norm=CLIP, batch_argnums=(1, 2), microbatch_size=at_once)

    @jax.jit
    def update(parameters: Values, key: Any) -> tuple[Values, Any]:
        key, *keys = jax.random.split(key, len(parameters) + 1)
        sums = clipped(parameters, inputs, labels)
        noise = {n: NOISE * CLIP * jax.random.normal(k, sums[n].shape) for n, k in zip(sums, keys, strict=True)}
        return {n: value - RATE * (sums[n] + noise[n]) / case.batch for n, value in parameters.items()}, key

    state = [{name: values[name] for name in learned}, jax.random.key(0)]

    def step() -> None:
        state[:] = jax.block_until_ready(update(*state))

    return step


def agree(model: nn.Module, forward: Callable[[Any], Any], x: torch.Tensor) -> None:
    """Refuse a model whose two versions differ."""
    with torch.no_grad():
        np.testing.assert_allclose(forward(jnp.asarray(x.numpy())), model(x).numpy(), rtol=1e-3, atol=1e-4)


def forward_of(model: nn.Module) -> Forward:
    """Choose the JAX version of a torch model; its parameters keep their names."""
    match model:
        case nn.Linear():
            return lambda p, x: _linear(p, "", x)
        case nn.Sequential():
            return lambda p, x: _sequential(model, p, x)
        case ReviewRnn():
            return _review
        case WideResNet():
            return lambda p, x: _residual(len(model.blocks), p, x)
        case Transformer():
            return lambda p, x: _transformer(len(model.blocks), model.blocks[0].heads, p, x)
    raise Absent("not written in JAX")


# -- layers ------------------------------------------------------------------------------------------------------------


def _linear(p: Values, name: str, x: Any) -> Any:
    return x @ p[f"{name}weight"].T + p[f"{name}bias"]


def _conv(p: Values, name: str, x: Any, stride: int, padding: int) -> Any:
    sides = ((padding, padding), (padding, padding))
    found = jax.lax.conv_general_dilated(x, p[f"{name}weight"], (stride, stride), sides)
    return found + p[f"{name}bias"][:, None, None]


def _pool(x: Any, size: int, stride: int) -> Any:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, size, size), (1, 1, stride, stride), "VALID")


def _standardised(x: Any, axis: int) -> Any:
    return (x - x.mean(axis, keepdims=True)) / jnp.sqrt(x.var(axis, keepdims=True) + 1e-5)


def _group_norm(groups: int, x: Any) -> Any:
    return _standardised(x.reshape(len(x), groups, -1), 2).reshape(x.shape)


def _layer_norm(p: Values, name: str, x: Any) -> Any:
    return _standardised(x, -1) * p[f"{name}weight"] + p[f"{name}bias"]


# -- models ------------------------------------------------------------------------------------------------------------


def _sequential(model: nn.Sequential, p: Values, x: Any) -> Any:
    for place, layer in model.named_children():
        match layer:
            case PublicNormalise():
                mean, spread = (jnp.asarray(value.numpy()) for value in (layer.mean, layer.std))
                x = (x - mean) / spread
            case nn.Conv2d():
                x = _conv(p, f"{place}.", x, layer.stride[0], layer.padding[0])
            case nn.MaxPool2d():
                x = _pool(x, layer.kernel_size, layer.stride)
            case nn.Linear():
                x = _linear(p, f"{place}.", x)
            case nn.GroupNorm():
                x = _group_norm(layer.num_groups, x)
            case nn.Tanh():
                x = jnp.tanh(x)
            case nn.Flatten():
                x = x.reshape(len(x), -1)
            case _:
                raise Absent(f"{type(layer).__name__} is not written in JAX")
    return x


def _review(p: Values, ids: Any) -> Any:
    x = jnp.tanh(_linear(p, "project.0.", p["embedding.weight"][ids])).transpose(1, 0, 2)
    states = jnp.concatenate([_lstm(p, "l0", x), _lstm(p, "l0_reverse", x[::-1])], -1)  # a mean takes any order
    return _linear(p, "classify.2.", jnp.tanh(_linear(p, "classify.0.", states.mean(0))))


def _lstm(p: Values, name: str, x: Any) -> Any:
    def walk(state: Any, gates: Any) -> Any:
        hidden, cell = state
        i, f, g, o = jnp.split(gates + hidden @ p[f"lstm.weight_hh_{name}"].T, 4, axis=-1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    gates = x @ p[f"lstm.weight_ih_{name}"].T + p[f"lstm.bias_ih_{name}"] + p[f"lstm.bias_hh_{name}"]
    start = jnp.zeros((x.shape[1], x.shape[2]))
    return jax.lax.scan(walk, (start, start), gates)[1]


def _residual(blocks: int, p: Values, x: Any) -> Any:
    def prepare(name: str, x: Any) -> Any:
        scale, shift = p[f"{name}weight"][:, None, None], p[f"{name}bias"][:, None, None]
        return jax.nn.relu(_group_norm(GROUPS, x) * scale + shift)

    x = _conv(p, "stem.", x, 1, 1)
    for block in (f"blocks.{i}." for i in range(blocks)):
        shape = p[f"{block}conv1.weight"].shape
        stride = 2 if f"{block}skip.weight" in p and shape[1] != 16 else 1
        start = prepare(f"{block}norm1.", x)
        branch = _conv(p, f"{block}conv1.", start, stride, 1)
        branch = _conv(p, f"{block}conv2.", prepare(f"{block}norm2.", branch), 1, 1)
        x = branch + (_conv(p, f"{block}skip.", start, stride, 0) if f"{block}skip.weight" in p else x)
    return _linear(p, "classify.", prepare("norm.", x).mean((2, 3)))


def _transformer(blocks: int, heads: int, p: Values, tokens: Any) -> Any:
    x = p["words.weight"][tokens] + p["places.weight"]
    n, length, width = x.shape
    for block in (f"blocks.{i}." for i in range(blocks)):
        mixed = _linear(p, f"{block}mix.", _layer_norm(p, f"{block}norm1.", x)).reshape(n, length, 3, heads, -1)
        found = jax.nn.dot_product_attention(mixed[:, :, 0], mixed[:, :, 1], mixed[:, :, 2])
        x = x + _linear(p, f"{block}out.", found.reshape(n, length, width))
        wide = jax.nn.gelu(_linear(p, f"{block}widen.", _layer_norm(p, f"{block}norm2.", x)), approximate=False)
        x = x + _linear(p, f"{block}narrow.", wide)
    return _linear(p, "classify.", _layer_norm(p, "norm.", x).mean(1))
