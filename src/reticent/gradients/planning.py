"""Planning: finds, on a few examples, where the examples are at each site, and proves the rules on them."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reticent.errors import ModelError
from reticent.gradients import layouts
from reticent.gradients.batches import Batch, chosen, map_tensors, size, tensors
from reticent.gradients.bookkeeping import books_of
from reticent.gradients.general import Gradients, gradients_of
from reticent.gradients.layouts import Layout
from reticent.gradients.randomness import undisturbed
from reticent.gradients.registry import RULES, Function
from reticent.gradients.scratch import give_back_freed_pages, keep_freed_pages
from reticent.gradients.tape import Args, Kwargs, NoRule, Site, SitePlan, Tape
from reticent.gradients.task import LossTask

log = logging.getLogger("reticent.gradients")

# Enough examples to tell the layouts apart, few enough to cost nothing.
PROBED = 3
# A wrong rule is off by far more than float32 rounds.
ROUNDING = 1e-3
# What a micro-batch keeps: freed memory up to this many bytes is there again for the next one. A pass over fewer
# examples than the second number is slow, so these may take more, but not more than the third.
KEPT = 2**26
WORTH_A_PASS = 16
MOST = 2**28


class _Unseen(NoRule):
    """The gradients do not tell where the examples are; other weights may show more."""

    def __init__(self, site: Site):
        super().__init__(site, "gradients of zero, as behind a head that starts at zero, do not tell whose they are")


@dataclass(eq=False)
class _Use:
    """What one use of parameters showed: the gradient of each example's loss, if it leads to the losses at all."""

    site: Site
    reached: list[Tensor]
    matters: bool = False

    def layout(self) -> Layout:
        """Where the examples are; what leads nowhere needs a shape that leaves no choice."""
        n, shape = len(self.reached), self.reached[0].shape
        place = layouts.find(self.reached) if self.matters else layouts.only(layouts.possible(shape, n))
        if place is None:
            raise _Unseen(self.site)
        return place


class _Probe(Tape):
    """Runs every known function as it is and keeps the gradients that pass each site."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], n: int, plan: SitePlan):
        super().__init__(parameters, n, plan)
        self.seen: dict[Site, list[_Use]] = {}
        self.telling: dict[Site, set[int]] = {}
        """For functions that say themselves where the examples are: those with a gradient there, to prove it on."""
        self.example = 0

    def use(self, site: Site, func: Function, args: Args, kwargs: Kwargs) -> object:
        plain = [self.plain(value) for value in args]
        result = func(*plain, **{key: self.plain(value) for key, value in kwargs.items()})
        if not RULES[func].located:
            return self._part_of_the_graph(site, result)
        assert isinstance(result, Tensor)
        use = _Use(site, [torch.zeros_like(result) for _ in range(self.n)])
        self.seen.setdefault(site, []).append(use)

        def show(gradient: Tensor) -> None:
            use.matters = True
            use.reached[self.example] = gradient

        return self.tap(result, show)

    def _part_of_the_graph(self, site: Site, result: object) -> object:
        if isinstance(result, tuple):
            return tuple(self._part_of_the_graph(site, value) for value in result)

        def show(gradient: Tensor) -> None:
            telling = self.telling.setdefault(site, set())
            if gradient.any():
                telling.add(self.example)

        return self.tap(result, show) if isinstance(result, Tensor) else result


def _locate(task: LossTask, batch: Batch) -> dict[Site, Layout]:
    """Find where the examples are at every site; what all examples share becomes part of the parameters."""
    found: dict[Site, Layout] = {}
    while True:
        probe = _Probe(task.parameters, size(batch), SitePlan(found))
        with torch.enable_grad(), probe:
            losses = task.losses(batch)
        _refuse_hidden(losses, task.parameters)
        for i in range(probe.n):
            probe.example = i
            torch.autograd.grad(losses[i], probe.anchor, retain_graph=True, allow_unused=True)
        for site, uses in probe.seen.items():
            places = {use.layout() for use in uses}
            if len(places) > 1:
                raise NoRule(site, "the examples are now here, now there")
            found[site] = places.pop()
        for site, examples in probe.telling.items():
            if len(examples) < probe.n - 1:
                raise _Unseen(site)
        if Layout.NOWHERE not in (found[site] for site in probe.seen):
            return found


def _refuse_hidden(losses: Tensor, parameters: Mapping[str, nn.Parameter]) -> None:
    """Refuse if a parameter reaches the losses past the tape, as inside TorchScript."""
    names = {id(parameter): name for name, parameter in parameters.items()}
    waiting, met = [losses.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in met:
            continue
        met.add(node)
        name = names.get(id(getattr(node, "variable", None)))
        if name is not None:
            raise NoRule(("a hidden function", (name,)), "the use of this parameter could not be seen")
        waiting += [before for before, _ in node.next_functions]


def _prove(task: LossTask, batch: Batch, plan: SitePlan) -> None:
    """Compare norms and sum with one backward pass for each example over the same forward pass."""
    rng = torch.get_rng_state()
    true_norms, sums = _one_backward_each(task, batch)
    torch.set_rng_state(rng)
    largest = {name: float(theirs.abs().max()) for name, theirs in sums.items()}
    nothing = ROUNDING**2 * max(largest.values())  # a gradient of 0 is only nearly 0
    for theirs in sums.values():
        theirs.neg_()  # ours are added to it: a large model has no room for both
    with books_of(task, batch, plan) as (books, norms):
        books.add_to(sums, norms, _different(norms))
    if not torch.allclose(norms, true_norms, ROUNDING, nothing, equal_nan=True):
        raise NoRule(("the proof", ("norms",)), "the rules do not give what autograd gives")
    for name, apart in sums.items():
        if not float(apart.abs_().max()) <= ROUNDING * largest[name] + nothing:
            raise NoRule(("the proof", (name,)), "the rules do not give what autograd gives")


def _different(norms: Tensor, first: int = 1) -> Tensor:
    """Weights that make every example count, and of which no two cancel a third; the first has the place `first`."""
    places = torch.arange(first, first + len(norms), dtype=norms.dtype, device=norms.device)
    return places.pow(1.5) / norms.clamp(min=1e-6)


def _one_backward_each(task: LossTask, batch: Batch) -> tuple[Tensor, Gradients]:
    """Norms and the weighted sum, with no more than one example's gradient in memory at a time."""
    with torch.enable_grad():
        losses = task.losses(batch)
    sums = {name: torch.zeros_like(parameter) for name, parameter in task.parameters.items()}

    def add(place: int, loss: Tensor) -> Tensor:
        own = gradients_of(task, loss, again=True)
        norm: Tensor = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(one) for one in own.values()]))
        if norm.isfinite():
            weight = float(_different(norm[None], place))
            for name, gradient in own.items():
                sums[name].detach().add_(gradient, alpha=weight)
        return norm

    return torch.stack([add(place, loss) for place, loss in enumerate(losses.unbind(), 1)]), sums


_plans: weakref.WeakKeyDictionary[nn.Module, dict[Hashable, SitePlan | None]] = weakref.WeakKeyDictionary()


def plan_of(task: LossTask, batch: Batch, *, again: bool = False) -> SitePlan | None:
    """Give the plan for a task, made once and kept while the model lives; None sends it to the general path.

    `again` adds what the model does with this batch to what it was seen to do before.
    """
    plans = _plans.setdefault(task.model, {})
    key = (
        tuple(task.parameters),
        task.model.training,
        getattr(task.loss, "__code__", type(task.loss)),
        tuple((tensor.ndim, tensor.dtype) for tensor in tensors(batch)),
    )
    if key not in plans or again:
        before = plans.get(key)
        few = map_tensors(chosen(batch, torch.arange(PROBED) % size(batch)), torch.nan_to_num)
        with undisturbed(task.model):
            plans[key] = _plan(task, few, {} if before is None else before.layouts)
    return plans[key]


def _located_and_proved(task: LossTask, few: Batch, known: Mapping[Site, Layout]) -> SitePlan:
    """The plan, found and proved where gradients tell something: as things are, or else with other weights or inputs.

    Where the examples are does not depend on either, but weights of zero hide it, as do examples that count for
    nothing; and a proof that compares zero with zero proves nothing of the steps to come.
    """
    made_up = map_tensors(few, lambda part: torch.randn_like(part) if part.is_floating_point() else part)
    tries: list[tuple[AbstractContextManager[None], Batch]] = [
        (nullcontext(), few),
        (_other_weights(task.parameters), few),
        (_other_weights(task.parameters), made_up),
    ]
    for weights, batch in tries:
        with weights:
            try:
                plan = SitePlan({**known, **_locate(task, batch)})
                _prove(task, batch, plan)
            except _Unseen as hidden:
                reason = hidden
            else:
                return plan
    raise reason


@contextmanager
def _other_weights(parameters: Mapping[str, nn.Parameter]) -> Iterator[None]:
    """Give every parameter a nudge of its own size, and take it back."""
    kept = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    try:
        for name, parameter in parameters.items():
            usual = float(kept[name].abs().mean())
            parameter.data.add_(torch.randn_like(kept[name]), alpha=usual / 2 or 0.1)
        yield
    finally:
        for name, parameter in parameters.items():
            parameter.data.copy_(kept[name])


def _plan(task: LossTask, few: Batch, known: Mapping[Site, Layout]) -> SitePlan | None:
    keep_freed_pages()
    try:
        plan = _located_and_proved(task, few, known)
    except ModelError:
        raise
    except Exception as reason:  # whatever a model does that the tape cannot follow, the general path can, or says why
        log.warning("%s takes the general path, exact but slower: %s", type(task.model).__name__, reason)
        return None
    give_back_freed_pages()
    at_once = _examples_at_once(task, few, plan)
    for channels_last in (True, False):
        better = SitePlan(plan.layouts, channels_last, at_once)
        try:
            with books_of(task, few, better):
                break
        except RuntimeError:  # a model that takes views of images needs them in the usual order
            continue
    return better


def _examples_at_once(task: LossTask, few: Batch, plan: SitePlan) -> int:
    """Choose a micro-batch whose tensors fit what is kept, from what a few examples make autograd keep."""
    own = {parameter.untyped_storage().data_ptr() for parameter in task.model.parameters()}
    kept = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor),
        books_of(task, few, plan) as (books, _),
    ):
        each = (sum(kept.values()) + books.held_bytes()) // size(few)
    each = max(1, each)
    return max(KEPT // each, min(WORTH_A_PASS, MOST // each), 1)
