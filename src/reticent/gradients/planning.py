"""Planning: proves the rules of a model on rows that are nobody's, and chooses how to run it."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Hashable
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from reticent.errors import ModelError
from reticent.gradients.batches import Batch, size, tensors
from reticent.gradients.bookkeeping import books_of
from reticent.gradients.grouped import GroupedLoss
from reticent.gradients.images import ChannelsLast
from reticent.gradients.probes import probes
from reticent.gradients.proving import other_weights, prove
from reticent.gradients.randomness import undisturbed, undo_attempt
from reticent.gradients.recomputing import nothing_recomputed
from reticent.gradients.scratch import give_back_freed_pages, keep_freed_pages
from reticent.gradients.survey import Unseen, surveyed
from reticent.gradients.tape import NoRule, SitePlan
from reticent.gradients.task import LossTask

log = logging.getLogger("reticent.gradients")

# Enough examples to show a rule that mixes them up, few enough to cost nothing.
PROBED = 3
# What a micro-batch keeps: freed memory up to this many bytes is there again for the next one. A pass over fewer
# examples than the second number is slow, so these may take more, but not more than the third.
KEPT = 2**26
WORTH_A_PASS = 16
MOST = 2**28
# A model that changes its ways more often than this is left to the general path in the passes that are not proved.
MOST_REASONS = 16


@dataclass(eq=False)
class _Entry:
    """The plan of a task, or none, and when to look for one again where gradients of zero hid a proof."""

    plan: SitePlan | None
    hidden: bool
    asked: int = 0
    next_look: int = 16

    def due(self) -> bool:
        """Say whether to look again: after 16, 32, 64... questions."""
        self.asked += 1
        plan = self.plan
        hidden = self.hidden if plan is None else bool(plan.silent and plan.hopeless)
        if not hidden or self.asked < self.next_look:
            return False
        self.next_look *= 2
        return True


_plans: weakref.WeakKeyDictionary[nn.Module, dict[Hashable, _Entry]] = weakref.WeakKeyDictionary()


def _key(task: LossTask, batch: Batch) -> Hashable:
    loss = task.loss
    return (
        tuple(task.parameters),
        task.model.training,
        loss.kind(batch) if isinstance(loss, GroupedLoss) else getattr(loss, "__code__", type(loss)),
        tuple((tensor.ndim, tensor.dtype) for tensor in tensors(batch)),
    )


def plan_of(task: LossTask, batch: Batch) -> SitePlan | None:
    """Give the plan for a task, made once and kept while the model lives; None sends it to the general path.

    Of the batch only shapes and types count: the model is tried on made-up or public rows, so that the path it takes
    tells nothing of the examples. A loss that takes each example alone has none, and nobody hears of it.
    """
    if getattr(task.loss, "alone", False):
        return None
    plans = _plans.setdefault(task.model, {})
    key = _key(task, batch)
    entry = plans.get(key)
    if entry is None:
        entry = plans[key] = _planned(task, batch, SitePlan(), loud=True)
    elif entry.due():
        again = _planned(task, batch, entry.plan or SitePlan(), loud=False)
        entry.plan, entry.hidden = again.plan or entry.plan, again.hidden
        if entry.plan is not None:
            entry.plan.hopeless.clear()
    return entry.plan


def plan_again(task: LossTask, batch: Batch, before: SitePlan, reason: NoRule) -> SitePlan | None:
    """Add what the model does now to what it was seen to do before; None if that was of no use already."""
    if str(reason) in before.hopeless or len(before.hopeless) >= MOST_REASONS:
        return None
    before.hopeless.add(str(reason))
    entry = _plans[task.model][_key(task, batch)]
    found = _planned(task, batch, before, loud=False)
    entry.plan, entry.hidden = found.plan or before, found.hidden
    return found.plan


def _planned(task: LossTask, batch: Batch, before: SitePlan, *, loud: bool) -> _Entry:
    keep_freed_pages()
    with undisturbed(task.model):
        try:
            plan, rows = _proved(task, batch)
            give_back_freed_pages()
            at_once = _examples_at_once(task, rows, plan)
        except ModelError:
            raise
        except Exception as reason:  # whatever a model does that cannot be followed, the general path can, or says why
            if loud:
                log.warning("%s takes the general path, exact but slower: %s", type(task.model).__name__, reason)
            return _Entry(None, isinstance(reason, Unseen))
        together = replace(
            plan,
            proved=plan.proved | before.proved,
            idle=(plan.idle | before.idle) - plan.proved - before.proved,
            silent=(plan.silent | before.silent) - plan.proved - before.proved,
            ambient={**before.ambient, **plan.ambient},
            hopeless=before.hopeless,
            at_once=at_once,
        )
        return _Entry(_with_channels_last(task, rows, together), hidden=False)


def _proved(task: LossTask, batch: Batch) -> tuple[SitePlan, Batch]:
    """The plan, and the rows it was proved on: with the weights as they are, or else with others.

    Weights of zero hide a wrong rule, and a proof that compares zero with zero proves nothing of the steps to come.
    Where all that was tried shows zeros somewhere, the rest is proved, and there nothing but zeros is taken.
    """
    reasons: list[Exception] = []
    for silence in (False, True):
        for rows in probes(task.model, batch, PROBED):
            for nudge in (True,) if silence else (False, True):
                with other_weights(task.parameters) if nudge else nullcontext():
                    try:
                        plan = surveyed(task, rows, silence=silence)
                        prove(task, rows, plan)
                        return plan, rows
                    except Unseen as hidden:
                        reasons.append(hidden)
                    except ModelError:
                        raise
                    except Exception as reason:
                        undo_attempt()
                        reasons.insert(0, reason)
                        break  # other weights would not help, other rows may
        if not any(isinstance(reason, Unseen) for reason in reasons):
            break
    raise reasons[-1] if all(isinstance(reason, Unseen) for reason in reasons) else reasons[0]


def _with_channels_last(task: LossTask, rows: Batch, plan: SitePlan) -> SitePlan:
    """Images run faster with their channels last; a model that takes views of them needs them in the usual order."""
    better = replace(plan, channels_last=True)
    try:
        with books_of(task, rows, better):
            plan = better
        # What is not trained gives images so here, but not above.
        with torch.no_grad(), nothing_recomputed(), ChannelsLast():
            task.losses(rows)
    except RuntimeError:
        undo_attempt()
        return plan
    return replace(plan, losses_channels_last=True)


def _examples_at_once(task: LossTask, rows: Batch, plan: SitePlan) -> int:
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
        books_of(task, rows, plan) as (books, _),
    ):
        each = (sum(kept.values()) + books.held_bytes()) // size(rows)
    each = max(1, each)
    if plan.spared and each > MOST:
        raise NoRule(("checkpoint", ()), "one example keeps too much where nothing is calculated again")
    return max(KEPT // each, min(WORTH_A_PASS, MOST // each), 1)
