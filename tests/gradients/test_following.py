"""Whose each tensor is follows from the functions that made it: what changes with one example is marked as its own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody writes it
from torch.overrides import TorchFunctionMode

from reticent.gradients.following import ABOUT_SHAPES, NotFollowed, Place, Whose
from reticent.gradients.following.follower import _MARK

N = 4
NUMBERS = np.ones(3)
CONSTANT = torch.rand(5, 5, generator=torch.Generator().manual_seed(1))


class Watch(TorchFunctionMode):
    """The follower alone, without rules."""

    def __init__(self, whose):
        super().__init__()
        self.whose = whose

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func not in ABOUT_SHAPES:
            self.whose.mark(result, self.whose.after(func, args, kwargs, result), args[0] if args else None)
        return result


def followed(function, *inputs):
    """The result and its place; each input is a tensor or a tensor with the place it is in."""
    whose = Whose(N, {}, curious=True)
    marked = []
    for tensor, place in inputs:
        own = tensor.clone()
        setattr(own, _MARK, (whose._pass, place))
        marked.append(own)
    with Watch(whose):
        result = function(*marked)
        return result, whose.of(result)


PLACES = {
    "first": (Place(0), (N, 5, 5)),
    "second": (Place(1), (5, N, 5)),
    "last": (Place(2), (5, 5, N)),
    "rows": (Place(0), (N, 5)),
    "columns": (Place(1), (5, N)),
    "one each": (Place(0), (N,)),
    "major": (Place(0, after=5), (5 * N, 5)),
    "minor": (Place(0, before=5), (5 * N, 5)),
    "images": (Place(0), (N, 4, 5, 5)),
    "heads": (Place(1, after=2), (5, 2 * N, 5)),
}


def owner(place, shape):
    """The example of each entry, by the place."""
    digit = torch.arange(shape[place.axis]) // place.after % N
    if place.order is not None:
        digit = place.order[digit]
    return digit.view([-1 if axis == place.axis else 1 for axis in range(len(shape))]).expand(shape)


KEPT = {
    "relu": F.relu,
    "add a number": lambda x: 1 + x,
    "power": lambda x: x**2,
    "power of": lambda x: 2**x,
    "clamp": lambda x: x.clamp(0.2, 0.7),
    "negated mask": lambda x: ~(x > 0.5),
    "where": lambda x: torch.where(x > 0.5, x, 0.0),
    "with itself": lambda x: x * x.exp() / (1 + x),
    "in place": lambda x: x.clone().mul_(2).add_(x),
    "type": lambda x: x.double().to(torch.float32).contiguous(),
    "unsqueeze": lambda x: x.unsqueeze(0).unsqueeze(-1),
    "unsqueeze and back": lambda x: x.unsqueeze(1).squeeze(1),
    "turned round": lambda x: x.permute(*range(x.ndim)[::-1]),
    "masked": lambda x: x.masked_fill(x > 0.5, 0.0),
    "like": lambda x: x + torch.zeros_like(x),
    "cat with itself": lambda x: torch.stack([x, x], -1),
    "repeat a new axis": lambda x: x.expand(3, *x.shape),
    "tile": lambda x: x.repeat(*[2] * x.ndim),
    "ellipsis": lambda x: x[..., None],
    "nan_to_num": lambda x: x.nan_to_num(),
    "as list": lambda x: torch.cat([x[None], x[None]], 0),
}
MAYBE = {
    "sum first": lambda x: x.sum(0),
    "sum last": lambda x: x.sum(-1),
    "sum two": lambda x: x.sum((0, -1)),
    "sum all": lambda x: x.sum(),
    "sum second, kept": lambda x: x.sum(1, keepdim=True),
    "mean by keyword": lambda x: x.mean(dim=1),
    "mean by axis": lambda x: x.mean(axis=0),
    "max values": lambda x: x.max(1).values,
    "max with": lambda x: torch.max(x, x.flip(-1)),
    "argmax": lambda x: x.argmax(-1),
    "var": lambda x: x.var(0),
    "norm": lambda x: x.norm(dim=-1),
    "norm all": lambda x: x.norm(),
    "vector norm": lambda x: torch.linalg.vector_norm(x, dim=1),
    "softmax last": lambda x: x.softmax(-1),
    "softmax first": lambda x: F.softmax(x, dim=0),
    "log softmax": lambda x: F.log_softmax(x, 1),
    "cumsum first": lambda x: x.cumsum(0),
    "cumsum last": lambda x: x.cumsum(-1),
    "flip first": lambda x: x.flip(0),
    "flip last": lambda x: torch.flip(x, (-1,)),
    "roll last": lambda x: x.roll(1, -1),
    "roll": lambda x: x.roll(1),
    "sort last": lambda x: x.sort(-1).values,
    "sort first": lambda x: x.sort(0).values,
    "argsort": lambda x: x[x.argsort()] if x.ndim == 1 else x.argsort(0),
    "sorted, by its order": lambda x: x[x.flatten(1).sum(1).argsort()],
    "sorted and back": lambda x: x[(order := x.flatten(1).sum(1).argsort())][order.argsort()],
    "topk last": lambda x: x.topk(2, -1).values,
    "topk first": lambda x: x.topk(2, 0).values,
    "transpose": lambda x: x.transpose(0, 1),
    "T": lambda x: x.T if x.ndim == 2 else x.mT,
    "movedim": lambda x: x.movedim(0, -1),
    "movedim of two": lambda x: x.movedim((0, 1), (1, -1)),
    "flatten": lambda x: x.flatten(),
    "flatten first": lambda x: x.flatten(0, 1),
    "flatten rest": lambda x: x.flatten(1),
    "flatten and cut": lambda x: x.flatten(0, 1).unflatten(0, (5, -1)),
    "flatten turned": lambda x: x.transpose(0, 1).flatten(0, 1),
    "reshape": lambda x: x.reshape(-1, 10),
    "reshape other": lambda x: x.reshape(2, -1),
    "reshape to heads": lambda x: x.reshape(*x.shape[:-1], -1, 1),
    "view and turn": lambda x: x.reshape(x.shape[0], -1).T,
    "wrong cut": lambda x: x.reshape(x.shape[1], x.shape[0], -1),
    "first row": lambda x: x[0],
    "last column": lambda x: x[..., -1],
    "second": lambda x: x[:, 1],
    "some rows": lambda x: x[1:],
    "whole slices": lambda x: x[0 : x.shape[0], ...],
    "backwards": lambda x: x[torch.arange(x.shape[0] - 1, -1, -1)],
    "mask of rows": lambda x: x[x.flatten(1).sum(1) > 0],
    "mask": lambda x: x[x > 0.5],
    "masked select": lambda x: x.masked_select(x > 0.5),
    "index select last": lambda x: x.index_select(-1, torch.tensor([1, 0])),
    "index on second": lambda x: x[:, torch.tensor([1, 0, 2])],
    "table on second": lambda x: x[:, torch.tensor([[1, 0], [2, 2]])],
    "roll by index": lambda x: x[torch.tensor([1, 2, 3, 0])] if x.shape[0] == N else x[0],
    "gather last": lambda x: x.gather(-1, torch.zeros(*x.shape[:-1], 1, dtype=torch.int64)),
    "gather first": lambda x: x.gather(0, torch.zeros_like(x, dtype=torch.int64)),
    "chunk last": lambda x: x.chunk(2, -1)[0],
    "chunk first": lambda x: x.chunk(2)[0],
    "split": lambda x: x.split(2, 1)[0],
    "narrow": lambda x: x.narrow(1, 0, 2),
    "unbind": lambda x: x.unbind(1)[0],
    "unbind first": lambda x: x.unbind()[0],
    "select": lambda x: x.select(-1, 0),
    "cat first": lambda x: torch.cat([x, x]),
    "cat to nothing": lambda x: torch.cat([torch.zeros(0), x], -2),
    "cat to nothing, last": lambda x: torch.cat([torch.zeros(0), x], -1),
    "cat to nothing, with itself": lambda x: torch.cat([torch.zeros(0), x, x], 1),
    "cat last": lambda x: torch.cat([x, x], -1),
    "stack": lambda x: torch.stack([x, x]),
    "pad last": lambda x: F.pad(x, (1, 1)),
    "pad two": lambda x: F.pad(x, (1, 1, 1, 1)),
    "repeat interleave": lambda x: x.repeat_interleave(2, 0),
    "repeat interleave last": lambda x: x.repeat_interleave(2, -1),
    "squeeze": lambda x: x.unsqueeze(1).squeeze(),
    "matmul": lambda x: x @ CONSTANT if x.shape[-1] == 5 else x @ CONSTANT[:4],
    "matmul from the left": lambda x: CONSTANT @ x if x.ndim > 1 and x.shape[-2] == 5 else CONSTANT[:, :4] @ x,
    "with its own transpose": lambda x: x @ x.mT,
    "its transpose with it": lambda x: x.mT @ x,
    "vector": lambda x: x @ (CONSTANT[0] if x.shape[-1] == 5 else CONSTANT[0, :4]),
    "linear": lambda x: F.linear(x, CONSTANT if x.shape[-1] == 5 else CONSTANT[:, :4]),
    "einsum": lambda x: torch.einsum("abc,cd->abd", x, CONSTANT),
    "einsum added up": lambda x: torch.einsum("abc,ad->bcd", x, CONSTANT[: x.shape[0]]),
    "einsum with itself": lambda x: torch.einsum("abc,abd->acd", x, x),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "broadcast across": lambda x: x[:, None] - x[None],
    "outer sum": lambda x: x + x.T,
    "plus constant": lambda x: x + torch.ones(5),
    "layer norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "layer norm of two": lambda x: F.layer_norm(x, x.shape[-2:]),
    "group norm": lambda x: F.group_norm(x, 1),
    "instance norm": lambda x: F.instance_norm(x),
    "batch norm": lambda x: F.batch_norm(x, None, None, training=True),
    "batch norm at rest": lambda x: F.batch_norm(x, torch.zeros(x.shape[1]), torch.ones(x.shape[1])),
    "conv": lambda x: F.conv1d(x, torch.ones(2, x.shape[1], 2)),
    "conv of images": lambda x: F.conv2d(x, torch.ones(2, x.shape[1], 2, 2)),
    "pool": lambda x: F.max_pool2d(x, 2),
    "pool lines": lambda x: F.avg_pool1d(x, 2),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, 1),
    "upsample": lambda x: F.interpolate(x, scale_factor=2.0),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "normalize first": lambda x: F.normalize(x, dim=0),
    "tril": lambda x: x.tril(),
    "one hot": lambda x: F.one_hot((x * 3).long(), 4),
    "embedding": lambda x: F.embedding((x * 3).long(), CONSTANT),
    "bag": lambda x: F.embedding_bag((x * 3).long(), CONSTANT),
    "bags in a list": lambda x: F.embedding_bag((x * 3).long().flatten(), CONSTANT, torch.arange(0, x.numel(), 5)),
    "bags of others": lambda x: F.embedding_bag((x * 3).long().flatten(), CONSTANT, torch.arange(0, x.numel(), 10)),
    "uneven bags": lambda x: F.embedding_bag((x * 3).long().flatten(), CONSTANT, torch.tensor([0, 3, 5, 6])),
    "looked up": lambda x: CONSTANT[(x * 3).long()],
    "cross entropy": lambda x: F.cross_entropy(x, x.argmax(1), reduction="none"),
    "cross entropy, mean": lambda x: F.cross_entropy(x, x.argmax(1)),
    "squared error": lambda x: F.mse_loss(x, x.detach() * 2, reduction="none"),
    "squared error, mean": lambda x: F.mse_loss(x, x * 2),
    "gru": lambda x: nn.GRU(5, 3)(x)[0],
    "lstm, batch first": lambda x: nn.LSTM(5, 3, batch_first=True)(x)[1][0],
    "cell": lambda x: nn.GRUCell(5, 3)(x),
    "heads": lambda x: nn.MultiheadAttention(5, 1)(x, x, x)[0],
    "written": lambda x: x.clone().__setitem__((slice(None), 0), 0.0) or x,
    "difference": lambda x: x.diff(1, -1),
    "unfold": lambda x: x.unfold(-1, 2, 1),
    "count": lambda x: (x > 0.5).sum(-1),
    "scatter": lambda x: torch.zeros_like(x).scatter(-1, torch.zeros_like(x, dtype=torch.int64), x),
    "addmm": lambda x: torch.addmm(x, CONSTANT[: x.shape[0], :3], CONSTANT[:3, : x.shape[1]]),
    "baddbmm": lambda x: torch.baddbmm(x, x, CONSTANT.expand(x.shape[0], 5, 5)),
    "filled constant": lambda x: torch.zeros(x.shape).copy_(x),
    "drawn like": lambda x: x * torch.ones_like(x),
    "length": lambda x: x * len(x),
    "one of each": lambda x: x[torch.arange(N), (x.flatten(1).sum(1) * 5).long() % x.shape[1]],
    "two of each": lambda x: x[torch.arange(N)[:, None], (x.flatten(1)[:, :2] * 5).long() % x.shape[1]],
    "one of each, among columns": lambda x: x[(x.movedim(1, 0).flatten(1).sum(1) * 5).long() % 4, torch.arange(N)],
    "of its neighbour": lambda x: x[torch.arange(N), (x.flatten(1).sum(1) * 5).long().roll(1) % x.shape[1]],
    "the neighbour's": lambda x: x[torch.arange(N).roll(1), torch.tensor([0, 1, 0, 1])],
    "apart": lambda x: x[torch.arange(N)[:, None], :, torch.tensor([[0, 2]])],
    "two columns at once": lambda x: x[:, torch.tensor([0, 1]), torch.tensor([2, 0])],
    "two columns apart": lambda x: x[torch.tensor([0, 1]), :, torch.tensor([2, 0])],
    "columns and a new axis": lambda x: x[None, :, torch.tensor([[0], [1]]), torch.tensor([2, 0])],
    "some rows and columns": lambda x: x[torch.tensor([0, 1]), torch.tensor([1, 0])],
    "mask by its places": lambda x: (x > 0.5)[torch.arange(N)[:, None, None, None], torch.arange(5)[None, None, None]],
    "list of columns": lambda x: x[..., [-1]],
    "list of rows": lambda x: x[[1, 0]],
    "list on second": lambda x: x[:, [2, 0, 2]],
    "list and table": lambda x: x[:, [0, 1], torch.tensor([1, 0])],
    "looked up, with a list": lambda x: CONSTANT[(x * 3).long(), [0]],
    "looked up by name": lambda x: CONSTANT.index_select(0, (x * 3).long().flatten()),
    "looked up among columns": lambda x: CONSTANT.index_select(1, (x * 3).long().flatten()),
    "pad second": lambda x: F.pad(x, (0, 0) * (x.ndim - 2) + (1, 1)),
    "pad first": lambda x: F.pad(x, (0, 0) * (x.ndim - 1) + (0, 1)),
    "pad nothing": lambda x: F.pad(x, (0, 0) * (x.ndim - 1) + (0, 0)),
    "fft": lambda x: torch.fft.fft(x).real,
    "fft of two": lambda x: torch.fft.fft2(x).imag,
    "fft first": lambda x: torch.fft.rfft(x, dim=0).real,
    "fftn": lambda x: torch.fft.fftn(x, dim=(1,)).real,
    "fft of all": lambda x: torch.fft.fftn(x).real,
    "difference from zeros": lambda x: x.diff(1, -1, prepend=torch.zeros_like(x)),
    "baddbmm by name": lambda x: torch.zeros(x.shape).baddbmm(batch1=x, batch2=CONSTANT.expand(x.shape[0], 5, 5)),
    "zeros added up": lambda x: x + torch.zeros_like(x).sum(),
    "zeros of the first": lambda x: x + torch.zeros_like(x).amax(0),
}


@pytest.mark.filterwarnings("ignore:The use of `x.T` on tensors of dimension other than 2")
@pytest.mark.parametrize("name", [*KEPT, *MAYBE])
def test_what_changes_with_an_example_is_marked_as_its_own(name):
    function = {**KEPT, **MAYBE}[name]
    for place, shape in PLACES.values():
        x = torch.rand(shape)
        rng = torch.get_rng_state()
        try:
            function(x.clone())
        except (RuntimeError, IndexError, ValueError, AssertionError):
            continue  # torch does not take this shape
        try:
            torch.set_rng_state(rng)
            followed(function, (x, place))
        except NotFollowed:
            assert name not in KEPT
        else:
            assert_owned(function, x, place, rng)


def assert_owned(function, x, place, rng):
    """Change one example after another and see what changes in the result."""
    torch.set_rng_state(rng)
    result, found = followed(function, (x, place))
    assert isinstance(found, Place)
    owners = owner(found, result.shape)
    for i in range(N):
        torch.set_rng_state(rng)
        changed, again = followed(function, (torch.where(owner(place, x.shape) == i, 1 - x, x), place))
        if found.order is None:
            assert not (result != changed)[owners != i].any()
        else:  # an order changes with the values: each example must be found where its own order says
            for j in set(range(N)) - {i}:
                assert torch.equal(result[owners == j], changed[owner(again, changed.shape) == j])


@pytest.mark.parametrize(
    "name", ["relu", "sum last", "flatten first", "matmul", "softmax last", "conv", "lstm, batch first"]
)
def test_the_common_case_is_followed(name):
    function = {**KEPT, **MAYBE}[name]
    result, found = followed(function, (torch.rand(N, 5, 5), Place(0)))
    assert isinstance(found, Place)
    assert len(result.shape) > found.axis


READ = {
    "numpy": lambda x: x.numpy(),
    "list": lambda x: x.tolist(),
    "truth": lambda x: bool(x.sum(1)[0] > 0),
    "number": lambda x: float(x[0, 0]),
    "rows": lambda x: next(row + 1 for row in x),
    "comparison": lambda x: torch.equal(x, x),
    "search": lambda x: 1.0 in x,
    "print": lambda x: repr(x),
    "address": lambda x: x.data_ptr(),
    "copy": lambda x: torch.as_tensor(x),
    "hook": lambda x: x.requires_grad_().register_hook(print),
    "slope": lambda x: torch.autograd.grad((y := x.requires_grad_() * 1), x, torch.ones_like(y)),
    "indices": lambda x: torch.nonzero(x),
    "distinct": lambda x: torch.unique(x),
    "filled": lambda x: torch.zeros(4, 5).copy_(x),
    "out": lambda x: torch.add(x, 1, out=torch.zeros(4, 5)),
    "by its number": lambda x: torch.ops.aten.sort(x),
    "mean": lambda x: x.mean() + 1,
    "shuffled rows": lambda x: x.roll(1, 0) + 1,
    "constant times rank": lambda x: x[x.sum(1).argsort()] * torch.arange(4)[:, None] + 1,
    "a part": lambda x: x[x.sum(1).topk(2).indices] + 1,
    "setting": lambda x: torch.zeros(4, 5).diff(1, 1, prepend=x) + 1,
}


@pytest.mark.parametrize("name", READ)
def test_reading_mixing_and_unknown_functions_end_it(name):
    with pytest.raises(NotFollowed):
        followed(lambda x: READ[name](x), (torch.rand(N, 5), Place(0)))


def test_what_was_not_seen_being_made_is_refused():
    whose = Whose(N, {})
    with Watch(whose), pytest.raises(NotFollowed, match="not seen being made"):
        whose.of(torch.from_numpy(NUMBERS) + 1)


def test_what_belongs_to_another_pass_is_refused():
    first, second = Whose(N, {}, curious=True), Whose(N, {}, curious=True)
    old = first.begin(torch.rand(N, 2))
    with Watch(second), pytest.raises(NotFollowed, match="earlier pass"):
        second.of(old + 1)
