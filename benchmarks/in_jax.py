"""The cases that were written again in JAX, for JAX-Privacy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from benchmarks.models import CASES, Case
from benchmarks.peers import CLIP, NOISE, RATE, Absent

MICROBATCH = 64


def step_of(case: Case) -> Callable[[], object]:
    """Build a compiled step, or say why not."""
    try:
        import jax
        import jax.numpy as jnp
        from jax_privacy import clipping
    except ImportError:
        raise Absent("jax or jax_privacy is not installed") from None
    name = next(name for name, one in CASES.items() if one is case).rstrip("0123456789")
    if name not in FORWARD:
        raise Absent("not written in JAX")
    shapes, forward = FORWARD[name]
    rng = np.random.default_rng(0)
    parameters = [jnp.asarray(rng.normal(size=s, scale=0.1).astype(np.float32)) for s in shapes]
    x, y = (jnp.asarray(tensor.numpy()) for tensor in case.examples())

    def loss(values, inputs, labels):
        logits = forward(jax, jnp, values, inputs)
        return -jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels].mean()

    clipped = clipping.clipped_grad(loss, l2_clip_norm=CLIP, batch_argnums=(1, 2), microbatch_size=MICROBATCH)

    @jax.jit
    def update(values, key):
        key, *keys = jax.random.split(key, len(values) + 1)
        sums = clipped(values, x, y)
        noisy = [g + NOISE * CLIP * jax.random.normal(k, g.shape) for g, k in zip(sums, keys, strict=True)]
        return [value - RATE * g / case.batch for value, g in zip(values, noisy, strict=True)], key

    state = [parameters, jax.random.key(0)]

    def step() -> None:
        state[:] = jax.block_until_ready(update(*state))

    return step


def _conv(jax, _jnp, x, weight, bias, stride, padding):
    sides = ((padding, padding), (padding, padding))
    return jax.lax.conv_general_dilated(x, weight, (stride, stride), sides) + bias[:, None, None]


def _pool(jax, jnp, x, stride):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, stride, stride), "VALID")


def _mnist(jax, jnp, p, x):
    x = _pool(jax, jnp, jnp.tanh(_conv(jax, jnp, x, p[0], p[1], 2, 2)), 1)
    x = _pool(jax, jnp, jnp.tanh(_conv(jax, jnp, x, p[2], p[3], 2, 0)), 1)
    return jnp.tanh(x.reshape(len(x), -1) @ p[4] + p[5]) @ p[6] + p[7]


def _cifar(jax, jnp, p, x):
    for block in range(3):
        for layer in range(2):
            i = 4 * block + 2 * layer
            x = jnp.tanh(_conv(jax, jnp, x, p[i], p[i + 1], 1, 1))
        x = _pool(jax, jnp, x, 2)
    return jnp.tanh(x.reshape(len(x), -1) @ p[12] + p[13]) @ p[14] + p[15]


def _linear(_jax, _jnp, p, x):
    return x @ p[0] + p[1]


def _scattering(jax, jnp, p, x):
    groups = x.reshape(len(x), 27, -1)
    x = ((groups - groups.mean(2, keepdims=True)) / jnp.sqrt(groups.var(2, keepdims=True) + 1e-5)).reshape(x.shape)
    x = jnp.tanh(_conv(jax, jnp, x, p[0], p[1], 2, 1))
    x = jnp.tanh(_conv(jax, jnp, x, p[2], p[3], 1, 1))
    return jnp.tanh(x.reshape(len(x), -1) @ p[4] + p[5]) @ p[6] + p[7]


_HEAD = [(512, 32), (32,), (32, 10), (10,)]
_WIDTHS = [3, 32, 32, 64, 64, 128, 128]
FORWARD = {
    "mnist": ([(16, 1, 8, 8), (16,), (32, 16, 4, 4), (32,), *_HEAD], _mnist),
    "cifar": (
        [s for a, b in pairwise(_WIDTHS) for s in ((b, a, 3, 3), (b,))] + [(2048, 128), (128,), (128, 10), (10,)],
        _cifar,
    ),
    "purchase": ([(600, 100), (100,)], _linear),
    "features": ([(768, 10), (10,)], _linear),
    "scattering": ([(16, 81, 3, 3), (16,), (32, 16, 3, 3), (32,), *_HEAD], _scattering),
}
