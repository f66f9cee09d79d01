"""Rule for multi-head attention as nn.MultiheadAttention asks for it: [positions, examples, features]."""

# ruff: noqa: ARG001 - a rule takes the arguments of the function it stands for

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from reticent.gradients.forms import Dense, Outer, StackedForm
from reticent.gradients.layouts import Layout
from reticent.gradients.registry import rule
from reticent.gradients.rules.broadcast import expanded
from reticent.gradients.rules.linear import linear
from reticent.gradients.uses import Forms, Use

_FUSED = ("attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")


@rule(functional.multi_head_attention_forward, located=False)
def multi_head_attention(
    use: Use,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Project with the rules for matrices; attention itself has no parameters."""
    odd = [static_k, static_v, in_proj_weight if use_separate_proj_weight else None]
    if query.ndim != 3 or any(value is not None for value in odd):
        raise use.refuse("attention with keys of its own, or without an axis of examples, has no rule")
    use = use.at(Layout.SECOND)
    apart = tuple(weight for weight in (q_proj_weight, k_proj_weight, v_proj_weight) if weight is not None)
    if in_proj_weight is not None and query is key is value:
        q, k, v = linear(use, query, in_proj_weight, in_proj_bias).chunk(3, dim=-1)
    else:
        weights = apart if in_proj_weight is None else (in_proj_weight,)
        q, k, v = _projected(use, (query, key, value), weights, in_proj_bias)
    mask = _mask(query, num_heads, attn_mask, key_padding_mask)
    for extra in ((bias_k, bias_v), (0, 0) if add_zero_attn else (None, None)):
        if extra[0] is not None:
            k, v = (torch.cat([side, _row(use, one, side)]) for side, one in zip((k, v), extra, strict=True))
            mask = None if mask is None else functional.pad(mask, (0, 1))
    q, k, v = (_heads(side, num_heads) for side in (q, k, v))
    dropout = dropout_p if training else 0.0
    if not need_weights:
        mixed, seen = functional.scaled_dot_product_attention(q, k, v, mask, dropout), None
    else:
        mixed, seen = _weighed(q, k, v, mask, dropout)
        seen = seen.mean(1) if average_attn_weights else seen
    merged = mixed.permute(2, 0, 1, 3).flatten(2)
    return linear(use, merged, out_proj_weight, out_proj_bias), seen


@rule(functional.scaled_dot_product_attention)
def fused_attention(use: Use, query: Tensor, key: Tensor, value: Tensor, *given: object, **named: object) -> Tensor:
    """What is a parameter, as a bias for each pair of positions, every example gets a view of."""
    named.update(zip(_FUSED, given, strict=False))
    sides = {"query": query, "key": key, "value": value, "attn_mask": named.pop("attn_mask", None)}
    like = max((side for side in sides.values() if isinstance(side, Tensor) and not use.wants(side)), key=Tensor.dim)
    own = {
        name: expanded(use, side, like) if isinstance(side, Tensor) and use.wants(side) else side
        for name, side in sides.items()
    }
    attend: Callable[..., Tensor] = functional.scaled_dot_product_attention
    return attend(**own, **named)


def _row(use: Use, extra: Tensor | int | None, like: Tensor) -> Tensor:
    """One more key or value, which all examples share: a parameter, or zeros."""
    if not isinstance(extra, Tensor):
        return torch.zeros_like(like[:1])
    return expanded(use, extra, like) if use.wants(extra) else extra.expand_as(like[:1])


def _heads(side: Tensor, heads: int) -> Tensor:
    """Bring [positions, examples, features] to [examples, heads, positions, features of a head]."""
    return side.reshape(*side.shape[:2], heads, -1).permute(1, 2, 0, 3)


def _weighed(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float) -> tuple[Tensor, Tensor]:
    scores = (q / math.sqrt(q.shape[-1])) @ k.mT
    weights = (scores if mask is None else scores + mask).softmax(-1)
    if dropout:
        weights = functional.dropout(weights, dropout)
    return weights @ v, weights


def _mask(query: Tensor, heads: int, attention: Tensor | None, padding: Tensor | None) -> Tensor | None:
    """Both masks as one to be added to the scores."""
    n = query.shape[1]
    mask: Tensor | None = None
    if attention is not None:
        mask = _additive(attention, query)
        if mask.ndim == 3:
            mask = mask.view(n, heads, *mask.shape[1:])
    if padding is not None:
        hidden = _additive(padding, query)[:, None, None]
        mask = hidden if mask is None else mask + hidden
    return mask


def _additive(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype != torch.bool:
        return mask.to(like.dtype)
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill(mask, -math.inf)


def _projected(
    use: Use, inputs: tuple[Tensor, ...], weights: tuple[Tensor, ...], bias: Tensor | None
) -> tuple[Tensor, ...]:
    """Project query, key and value apart, by three matrices or by the thirds of one."""
    values = [use.plain(weight) for weight in weights] if len(weights) == 3 else use.plain(weights[0]).chunk(3)
    biases = (None,) * 3 if bias is None else use.plain(bias).chunk(3)
    sides = [functional.linear(x, w, b) for x, w, b in zip(inputs, values, biases, strict=True)]
    lengths = [len(x) for x in inputs]

    def forms(gradient: Tensor) -> Forms:
        outgoing = [use.positions(side) for side in torch.split(gradient, lengths)]
        outers = tuple(Outer(g, use.positions(x)) for g, x in zip(outgoing, inputs, strict=True))
        if len(weights) == 3:
            yield from zip(weights, outers, strict=True)
        elif use.wants(weights[0]):
            yield weights[0], StackedForm(outers, tuple(len(value) for value in values))
        if use.wants(bias):
            yield bias, Dense(torch.cat([g.sum(1) for g in outgoing], dim=1))

    return torch.split(use.tap(torch.cat(sides), (*weights, bias), forms, saved=inputs), lengths)
