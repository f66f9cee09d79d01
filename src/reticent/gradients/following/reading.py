"""Functions that tell of shapes and types only: whoever the examples are, the answer is the same."""

from __future__ import annotations

import torch
from torch import Tensor

from reticent.gradients.following.follower import ABOUT_SHAPES, getter, named

_PROPERTIES = """shape ndim dtype device requires_grad is_leaf grad_fn layout is_cuda is_cpu is_sparse is_quantized
is_nested is_meta is_mkldnn itemsize nbytes names _version output_nr is_mps is_sparse_csr"""
_METHODS = """size dim ndimension numel nelement stride storage_offset is_contiguous is_floating_point is_complex
is_signed element_size get_device __len__ is_same_size is_conj is_neg is_inference is_pinned __hash__ _is_view
result_type can_cast is_tensor"""

ABOUT_SHAPES.update(getter(name) for name in _PROPERTIES.split() if hasattr(Tensor, name))
ABOUT_SHAPES.update(function for name in _METHODS.split() for function in named(name, (torch, Tensor)))
