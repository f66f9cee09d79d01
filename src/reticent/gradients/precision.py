"""Precision: whatever a caller has on, gradients are bounded and added up in the type they have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

_KINDS = ("cpu", "cuda", "xpu")
_PARTS = (("mkldnn", "matmul"), ("mkldnn", "conv"), ("mkldnn", "rnn"), ("cuda", "matmul"))
"""Where newer versions of torch are told how exactly to multiply."""
_SHORT = ("bf16", "tf32")


@contextmanager
def own_precision() -> Iterator[None]:
    """Without the autocast of whoever calls, and with products of float32 in float32.

    In half precision one example moves a sum by more than its bound, and norms of short products bound too little. A
    model or a loss that turns autocast on by itself has it: what it answers is turned back before it is summed.

    >>> with torch.autocast("cpu", dtype=torch.bfloat16), own_precision():
    ...     torch.is_autocast_enabled("cpu")
    False
    """
    with ExitStack() as stack:
        for kind in _KINDS:
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        _multiply_exactly(stack)
        yield


def _multiply_exactly(stack: ExitStack) -> None:
    """Until the stack is left, no product of float32 is made of shorter numbers (bfloat16, TF32)."""
    try:
        allowed = torch.get_float32_matmul_precision()
    except RuntimeError:  # it was told part by part
        allowed = "highest"
    if allowed != "highest":
        torch.set_float32_matmul_precision("highest")
        stack.callback(torch.set_float32_matmul_precision, allowed)
    for backend, name in _PARTS:
        part: Any = getattr(getattr(torch.backends, backend), name, None)
        said = getattr(part, "fp32_precision", None)
        if said in _SHORT:
            part.fp32_precision = "ieee"
            stack.callback(setattr, part, "fp32_precision", said)
    if torch.cuda.is_initialized() and torch.backends.cudnn.allow_tf32:  # type: ignore[no-untyped-call]
        torch.backends.cudnn.allow_tf32 = False
        stack.callback(setattr, torch.backends.cudnn, "allow_tf32", True)
