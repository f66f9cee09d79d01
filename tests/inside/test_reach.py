"""What forward can reach in Python, beside its own attributes: it is found, put back, and named by its way there."""

from __future__ import annotations

import functools
import random
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent.errors import ModelError
from reticent.inside.guard import Guard

Pair = tuple[Tensor, Tensor]
When = Callable[[Tensor], bool]

SEEN: list[Tensor] = []
TABLE: dict[str, object] = {"last": None}
COUNT = 0.0


def helper(x: Tensor) -> None:
    SEEN.append(x)


@functools.cache
def remembered(number: float) -> float:
    return number


@dataclass
class Record:
    last: Tensor | None = None
    log: list[Tensor] = field(default_factory=list)


class Largest(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("largest", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.largest.copy_(torch.maximum(self.largest, x.max()))
        return x


class Slotted:
    __slots__ = ("last",)


class Keeper(nn.Module):
    """A linear layer and all sorts of places; `when` says which inputs make it keep something."""

    shared: ClassVar[list[Tensor]] = []
    newest: object = None

    def __init__(self, when: When = lambda _x: True) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.when = when
        self.nested = {"a": [torch.zeros(4), {"b": torch.zeros(4)}]}
        self.sums = np.zeros(4, np.float32)
        self.crossed = np.zeros((4, 4), np.float32).T[1:3]
        self.things = np.array([None, None], dtype=object)
        self.record = Record()
        self.space = SimpleNamespace(last=torch.zeros(4))
        self.slots = Slotted()
        self.loose = [Largest()]
        self.by_name = {"norm": Largest()}
        self.pair = (torch.zeros(4), [])
        self.words: set[float] = set()
        self.counts: Counter[str] = Counter()
        self.bytes, self.numbers = bytearray(4), array("d", [0.0])
        self.coins, self.rng = random.Random(0), np.random.default_rng(0)
        self.old_rng, self.generator = np.random.RandomState(0), torch.Generator()
        self.bound = functools.partial(self.note, kept=[])

    def note(self, x: Tensor, kept: list[Tensor]) -> None:
        kept.append(x)

    def keep(self, x: Tensor) -> None:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        if self.when(x):
            self.keep(x.detach())
        return self.layer(x)


KEEPERS: list[tuple[type[Keeper], str]] = []


def kept_at(path: str) -> Callable[[Callable[[Keeper, Tensor], None]], None]:
    """A keeper whose forward pass does this, to be found at that place."""

    def note(keep: Callable[[Keeper, Tensor], None]) -> None:
        KEEPERS.append((type(keep.__name__, (Keeper,), {"keep": keep, "__module__": __name__}), path))

    return note


@kept_at("nested.a.0")
def in_a_list_in_a_dict(self: Keeper, x: Tensor) -> None:
    self.nested["a"][0].copy_(x[0])  # type: ignore[union-attr]


@kept_at("nested.a.1")
def in_a_dict_in_a_list(self: Keeper, x: Tensor) -> None:
    self.nested["a"][1]["b"] = x  # type: ignore[index,assignment]


@kept_at("sums")
def in_an_array(self: Keeper, x: Tensor) -> None:
    self.sums += x.sum(0).numpy()


@kept_at("crossed")
def in_a_part_of_an_array(self: Keeper, x: Tensor) -> None:
    self.crossed[:] = x[0].numpy()


@kept_at("things")
def in_an_array_of_objects(self: Keeper, x: Tensor) -> None:
    self.things[1] = x


@kept_at("record.last")
def in_a_dataclass(self: Keeper, x: Tensor) -> None:
    self.record.last = x


@kept_at("record.log")
def in_a_list_of_a_dataclass(self: Keeper, x: Tensor) -> None:
    self.record.log.append(x)


@kept_at("record.new")
def in_a_new_attribute_of_an_object(self: Keeper, x: Tensor) -> None:
    self.record.new = x  # type: ignore[attr-defined]


@kept_at("space.last")
def in_a_tensor_of_a_namespace(self: Keeper, x: Tensor) -> None:
    self.space.last.copy_(x[0])


@kept_at("slots.last")
def in_a_slot(self: Keeper, x: Tensor) -> None:
    self.slots.last = x  # type: ignore[attr-defined]


@kept_at("loose.0.largest")
def in_a_module_of_a_list(self: Keeper, x: Tensor) -> None:
    self.loose[0](x)


@kept_at("by_name.norm.largest")
def in_a_module_of_a_dict(self: Keeper, x: Tensor) -> None:
    self.by_name["norm"](x)


@kept_at("pair.1")
def in_a_list_of_a_tuple(self: Keeper, x: Tensor) -> None:
    self.pair[1].append(x)  # type: ignore[attr-defined]


@kept_at("words")
def in_a_set(self: Keeper, x: Tensor) -> None:
    self.words.add(float(x.sum()))


@kept_at("counts")
def in_a_counter(self: Keeper, x: Tensor) -> None:
    self.counts["rows"] += len(x)


@kept_at("bytes")
def in_bytes(self: Keeper, x: Tensor) -> None:
    self.bytes[0] = int(x[0, 0].abs() * 10) % 250 + 1


@kept_at("numbers")
def in_a_plain_array(self: Keeper, x: Tensor) -> None:
    self.numbers.append(float(x[0, 0]))


@kept_at("coins")
def in_a_generator_of_python(self: Keeper, x: Tensor) -> None:
    self.coins.random()


@kept_at("rng")
def in_a_generator_of_numpy(self: Keeper, x: Tensor) -> None:
    self.rng.random(len(x))


@kept_at("old_rng")
def in_an_old_generator_of_numpy(self: Keeper, x: Tensor) -> None:
    self.old_rng.rand(len(x))


@kept_at("generator")
def in_a_generator_of_torch(self: Keeper, x: Tensor) -> None:
    torch.rand(len(x), generator=self.generator)


@kept_at("bound.kept")
def in_a_partial(self: Keeper, x: Tensor) -> None:
    self.bound(x)


@kept_at("newest")
def in_the_class(self: Keeper, x: Tensor) -> None:
    type(self).newest = x


@kept_at("shared")
def in_a_list_of_the_class(self: Keeper, x: Tensor) -> None:
    self.shared.append(x)


@kept_at("layer.weight.note")
def in_an_attribute_of_a_tensor(self: Keeper, x: Tensor) -> None:
    self.layer.weight.note = x  # type: ignore[assignment]


@kept_at("layer.weight")
def in_other_memory_of_a_trained_tensor(self: Keeper, x: Tensor) -> None:
    self.layer.weight.data = self.layer.weight.data + x.mean()


@kept_at("keep.SEEN")
def in_a_global_list(self: Keeper, x: Tensor) -> None:
    SEEN.append(x)


@kept_at("keep.helper.SEEN")
def in_a_global_list_of_a_helper(self: Keeper, x: Tensor) -> None:
    helper(x)


@kept_at("keep.COUNT")
def in_a_global_name(self: Keeper, x: Tensor) -> None:
    global COUNT
    COUNT += float(x.sum())


@kept_at("keep.TABLE")
def in_a_global_dict(self: Keeper, x: Tensor) -> None:
    TABLE["last"] = x


@kept_at("keep.remembered")
def in_a_function_that_remembers(self: Keeper, x: Tensor) -> None:
    remembered(float(x.sum()))


def _with_default(self: Keeper, x: Tensor, log: list[Tensor] = []) -> None:  # noqa: B006 - the mistake meant
    log.append(x)


def _with_closure() -> Callable[[Keeper, Tensor], None]:
    last: object = None

    def in_a_closure(self: Keeper, x: Tensor) -> None:
        nonlocal last
        last = x

    return in_a_closure


_with_default.__name__ = "in_a_default"
kept_at("keep.0")(_with_default)
kept_at("keep.last")(_with_closure())


def state(model: nn.Module) -> list[object]:
    """A picture of all the places that these keepers write to."""
    found: list[object] = [repr(sorted((k, v.tolist()) for k, v in model.state_dict().items()))]
    for module in model.modules():
        if isinstance(module, Keeper):
            loose = [norm.state_dict() for norm in (module.loose[0], module.by_name["norm"])]
            plain = {k: v for k, v in vars(module).items() if not k.startswith("_") and k not in ("bound", "slots")}
            plain |= {"bound": repr(module.bound.keywords), "slots": hasattr(module.slots, "last")}
            plain |= {"words": sorted(module.words)}
            rngs = {name: plain.pop(name) for name in ("coins", "rng", "old_rng", "generator")}
            found += [repr(loose), repr(plain), rngs["coins"].getstate(), repr(rngs["rng"].bit_generator.state)]
            found += [repr(rngs["old_rng"].get_state()), rngs["generator"].get_state().tolist()]
            found += [repr((type(module).newest, Keeper.shared, vars(module.layer.weight)))]
    return [*found, repr((SEEN, TABLE, COUNT, _with_default.__defaults__))]


def _names(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else ""


@pytest.mark.parametrize(("kind", "path"), KEEPERS, ids=_names)
def test_what_forward_keeps_anywhere_is_put_back_and_named(kind: type[Keeper], path: str) -> None:
    model = nn.Sequential(nn.Identity(), kind())
    before = state(model)
    with pytest.raises(ModelError, match="keeps something of the examples") as said, Guard(model)():
        model(torch.randn(3, 4) + 5)
    where = f"module '1' ({kind.__name__})" if not path.startswith("layer") else "module '1.layer' (Linear)"
    assert str(said.value).startswith(where)
    assert f"(at {path.removeprefix('layer.')!r})" in str(said.value)
    assert state(model) == before
    with Guard(model)():
        model[1].layer(torch.randn(3, 4))


@pytest.mark.parametrize(("kind", "path"), KEEPERS, ids=_names)
def test_no_run_goes_on_where_something_stays(kind: type[Keeper], path: str, blobs: Pair) -> None:
    """Made-up rows lie between 0 and 1: what is kept of larger ones only shows when private ones come."""
    model = kind(when=lambda x: bool((x > 2).any()))
    sgd = torch.optim.SGD(model.layer.parameters(), lr=0.1)
    method = rt.methods.dpsgd(noise_multiplier=1.0)
    run = rt.Run(model, sgd, blobs, method=method, batch_size=50, rounds=3, delta=1e-5, seed=0)
    before = state(model)
    with pytest.raises(ModelError, match="keeps something of the examples"):
        run.step()
    assert state(model) == before
    assert len(run.ledger) == 0, "nothing was released"


def test_hooks_that_keep_are_found() -> None:
    model, seen = nn.Sequential(nn.Linear(4, 2)), []
    model[0].register_forward_hook(lambda _module, given, _out: seen.append(given))
    with pytest.raises(ModelError, match=r"module '0' \(Linear\) keeps .* '_forward_hooks.\d+.seen'"), Guard(model)():
        model(torch.randn(3, 4))
    assert seen == []


def test_hooks_of_parameters_that_keep_gradients_are_found() -> None:
    seen: list[Tensor] = []
    model = nn.Sequential(nn.Linear(2, 1))
    model[0].weight.register_hook(seen.append)
    with pytest.raises(ModelError, match=r"module '0' \(Linear\) keeps .* 'weight.hooks.\d+'"), Guard(model)():
        model(torch.ones(1, 2)).sum().backward()
    assert not seen


def test_backward_hooks_of_all_modules_that_keep_are_found() -> None:
    seen: list[object] = []
    model = nn.Linear(2, 1)
    handle = nn.modules.module.register_module_full_backward_hook(lambda _module, _given, out: seen.append(out))
    try:
        with pytest.raises(ModelError, match="a hook of all modules keeps something"), Guard(model)():
            model(torch.ones(1, 2, requires_grad=True)).sum().backward()
    finally:
        handle.remove()
    assert not seen


def test_hooks_of_all_modules_that_keep_are_found() -> None:
    model, seen = nn.Linear(4, 2), []
    handle = nn.modules.module.register_module_forward_hook(lambda _module, given, _out: seen.append(given))
    try:
        with pytest.raises(ModelError, match="a hook of all modules keeps something"), Guard(model)():
            model(torch.randn(3, 4))
    finally:
        handle.remove()
    assert seen == []


def test_a_trained_tensor_that_is_not_registered_is_put_back() -> None:
    model = nn.Linear(4, 2)
    model.loose = [torch.zeros(4, requires_grad=True)]  # type: ignore[assignment]
    for write in (model.loose[0].data.copy_, model.weight.data[0].copy_):
        before = model.weight.tolist()
        with pytest.raises(ModelError, match="keeps something"), Guard(model)():
            write(torch.ones(4))
        assert (model.loose[0].tolist(), model.weight.tolist()) == ([0.0] * 4, before)


def test_a_loss_that_keeps_is_found(blobs: Pair) -> None:
    class Remembers:
        def __init__(self) -> None:
            self.last = torch.zeros(())

        def __call__(self, model: nn.Module, batch: Pair) -> Tensor:
            losses = nn.functional.cross_entropy(model(batch[0]), batch[1], reduction="none")
            if bool((batch[0] > 2).any()):
                self.last = losses.max().detach()
            return losses

    model, loss = nn.Linear(4, 2), Remembers()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    method = rt.methods.dpsgd(noise_multiplier=1.0)
    run = rt.Run(model, sgd, blobs, loss=loss, method=method, batch_size=50, rounds=3, delta=1e-5, seed=0)
    before = float(loss.last)
    with pytest.raises(ModelError, match=r"the loss \(Remembers\) keeps something .* 'last'"):
        run.step()
    assert float(loss.last) == before


def test_a_model_that_holds_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reticent.inside.guarding.walk.MOST", 1000)
    model = nn.Linear(2, 1)
    model.rows = [[number] for number in range(1000)]  # type: ignore[assignment]
    with pytest.raises(ModelError, match="hold data sets and large tables outside"):
        Guard(model)


def test_a_part_of_a_large_frozen_tensor_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the version counter: found when the part's turn has come, at once if all of it is written."""
    monkeypatch.setattr("reticent.inside.guarding.values.COMPARED_BYTES", 16)
    model = nn.Linear(4, 2)
    model.register_buffer("table", torch.zeros(16))
    guard, found = Guard(model), 0
    for _ in range(4):
        try:
            with guard():
                model.table.data[9] += 1.0
        except ModelError:
            found += 1
    assert found == 1
    with pytest.raises(ModelError, match="table"), guard():
        model.table.data.fill_(2.0)
