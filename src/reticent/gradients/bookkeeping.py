"""Book-keeping: one forward and one backward pass that give norms and weighted sum (Bu et al. 2023)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from reticent.gradients import rules as _rules  # noqa: F401 - fills the registry
from reticent.gradients.batches import Batch, size
from reticent.gradients.following import Args, Function, Kwargs
from reticent.gradients.forms import Form, Pull, Pulled
from reticent.gradients.forms.dense import columns
from reticent.gradients.grouped import Grouped
from reticent.gradients.hidden import refuse_hidden
from reticent.gradients.layouts import Layout
from reticent.gradients.recomputing import nothing_recomputed
from reticent.gradients.registry import RULES
from reticent.gradients.tape import NoRule, Site, SitePlan, Tape
from reticent.gradients.task import LossTask
from reticent.gradients.telling import told
from reticent.gradients.uses import Forms, Use


class Books(Tape):
    """Runs the rules, collects the forms, and takes the squared norms while the backward pass goes by."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], n: int, plan: SitePlan, *, grouped: bool = False):
        super().__init__(parameters, n, plan)
        self._grouped = grouped
        self._pending: dict[int, int] = {}
        self._counted: tuple[int, set[int]] = 0, set()
        self._uses: dict[int, list[Form]] = {}
        self._forms: dict[int, Form] = {}
        self._squares: dict[int, Tensor] = {}
        self._doubts: dict[int, Tensor] = {}
        self._finite = False

    def tell(self, func: Function, own: Tensor) -> object:
        self.told = True
        return told(func, own, self.refuse)

    def use(self, site: Site, layout: Layout, func: Function, args: Args, kwargs: Kwargs) -> object:
        if (site, layout) in self.plan.proved:
            return RULES[func].run(Use(self, site, layout), *args, **kwargs)
        idle, silent = (site, layout) in self.plan.idle, (site, layout) in self.plan.silent
        if not idle and not silent:
            raise NoRule(site, f"not proved with the examples on {layout.value}")
        return RULES[func].run(Use(self, site, layout, silent=silent, idle=idle and not silent), *args, **kwargs)

    def expect(self, values: Iterable[Tensor | None]) -> None:
        """Note that the backward pass will bring one form for each followed value."""
        for value in values:
            if id(value) in self._names:
                self._pending[id(value)] = self._pending.get(id(value), 0) + 1

    def receive(self, forms: Forms) -> None:
        """Take forms from a rule; a parameter is measured as soon as all its uses are in."""
        for value, form in forms:
            if (key := id(value)) in self._names:
                self._uses.setdefault(key, []).append(form)
                self._arrived(key)

    def pass_over(self, values: Iterable[Tensor | None]) -> None:
        """Take it that a use of these values adds nothing."""
        for value in values:
            if self.follows(value):
                self._arrived(id(value))

    def _arrived(self, key: int) -> None:
        self._pending[key] = self._pending.get(key, 0) - 1
        if not self._pending[key] and key in self._uses and key not in self.roots and key not in self._shared():
            self._measure(key)

    def _shared(self) -> set[int]:
        """Parameters that other followed tensors are made from."""
        if len(self.roots) != self._counted[0]:
            used = [roots for key, (_, roots) in self.roots.items() if key in self._pending]  # the others bring no form
            self._counted = len(self.roots), {id(root) for roots in used for root in roots}
        return self._counted[1]

    def _joined(self, key: int) -> Form:
        form, *others = self._uses.pop(key)
        form = form.joined(others) if others else form
        return form.added() if self._grouped else form

    def _measure(self, key: int) -> None:
        self._squares[key], self._forms[key], doubt = self._joined(key).look()
        if doubt is not None:
            self._doubts[key] = doubt

    def close(self) -> Tensor:
        """Take what is left, parameters used through other tensors last, and give the norms."""
        for key, (value, roots) in self.roots.items():
            if key in self._uses:
                pull = Pull(value, roots, self._joined(key).measure()[1])
                for i, root in enumerate(roots):
                    self._uses.setdefault(id(root), []).append(Pulled(pull, i))
        for key in list(self._uses):
            self._measure(key)
        return self._settled()

    def _settled(self) -> Tensor:
        """The norms, all doubts about them read at once, and whether they are finite."""
        norms, before = self._norms(), dict(self._squares)
        asked = [doubt.to(norms.dtype) for doubt in (*self._doubts.values(), norms.sum())]
        *doubts, total = torch.stack(asked).tolist()  # on a device this is to wait
        for key, doubt in zip(self._doubts, doubts, strict=True):
            self._squares[key], self._forms[key] = self._forms[key].settled(before[key], doubt)
        if any(self._squares[key] is not before[key] for key in self._doubts):
            norms = self._norms()
            total = float(norms.sum())
        self._finite = math.isfinite(total)
        return norms

    def _norms(self) -> Tensor:
        return torch.stack(list(self._squares.values())).sum(0).sqrt()

    def burn(self) -> None:
        """Let go of everything: the graph holds the books, and the books hold views of what is in the graph."""
        self._uses.clear()
        self._forms.clear()
        self.roots.clear()
        self.looked_up.clear()
        self.turned.clear()

    def held_bytes(self) -> int:
        """Say how much memory the forms keep until the weights are known."""
        return sum(form.held() for form in self._forms.values())

    def columns(self, parts: Mapping[str, int]) -> Tensor:
        """Give the norm over each part of the parameters, after `close`: examples first."""
        return columns({self.name(key): found for key, found in self._squares.items()}, parts)

    def add_to(
        self, totals: Mapping[str, Tensor], norms: Tensor, weights: Tensor, parts: Mapping[str, int] | None = None
    ) -> None:
        """Add every parameter's weighted gradients to its total; an example without a finite norm is left out."""
        good = None if self._finite else norms.isfinite()
        if good is not None and not good.any():
            return
        for key, form in self._forms.items():
            name = self.name(key)
            total, own = totals[name].detach(), weights if parts is None else weights[:, parts[name]].contiguous()
            if good is None:
                form.add_to(total, own)
            else:
                form.keep(good).add_to(total, own[good])


@contextmanager
def books_of(
    task: LossTask, batch: Batch, plan: SitePlan, counted: Tensor | None = None
) -> Iterator[tuple[Books, Tensor]]:
    """Run both passes and give the books, closed, with the norms, until the block ends.

    With a mask of those `counted`, the losses of the others are left out.
    """
    books = Books(task.parameters, size(batch), plan, grouped=isinstance(batch, Grouped))
    with plan.scratch.in_use():
        try:
            examples = books.begin(batch)
            with torch.enable_grad(), nothing_recomputed(), books:
                try:
                    losses = task.losses(examples, books.n)
                except TypeError as odd:
                    if not books.told:
                        raise
                    raise NoRule(("a number of all examples", ()), str(odd)) from None
            refuse_hidden(losses, task.parameters)
            books.end(losses)
            total = losses.sum() if counted is None else losses[counted.to(losses.device)].sum()
            torch.autograd.grad(total, books.anchor, allow_unused=True)
            with torch.no_grad():
                yield books, books.close()
        finally:
            books.burn()
