"""A use of parameters on examples, as a rule sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias, TypeVar

import torch
from torch import Tensor

from reticent.gradients.following import Packed, Routing, Whose
from reticent.gradients.forms import Form
from reticent.gradients.layouts import Layout
from reticent.gradients.tape import LookedUp, NoRule, Site, SitePlan

T = TypeVar("T")
_FIRST = Layout.FIRST  # looked up once: an attribute of an enumeration takes longer than the comparison
Forms: TypeAlias = Iterator[tuple[Tensor | None, Form]]

_SILENT = "its gradients were zero when the model was planned, so that its rule is not proved"


def _nothing(gradient: Tensor) -> bool:
    return not bool(gradient.any())


class Collector(Protocol):
    """What a use needs of the book-keeping around it."""

    n: int
    anchor: Tensor
    plan: SitePlan
    whose: Whose
    looked_up: dict[int, LookedUp]
    turned: dict[int, Tensor]

    def follows(self, value: object) -> bool: ...
    def plain(self, value: T) -> T: ...
    def tap(self, value: Tensor, show: Callable[[Tensor], None]) -> Tensor: ...
    def expect(self, values: Iterable[Tensor | None]) -> None: ...
    def receive(self, forms: Forms) -> None: ...
    def pass_over(self, values: Iterable[Tensor | None]) -> None: ...


class Use:
    """One use of parameters on examples, as a rule sees it."""

    def __init__(self, books: Collector, site: Site, layout: Layout, *, silent: bool = False, idle: bool = False):
        self.n = books.n
        self.anchor = books.anchor
        self.channels_last = books.plan.channels_last
        self.site = site
        self.layout = layout
        self._books = books
        self._silent, self._idle = silent, idle

    def at(self, layout: Layout) -> Use:
        """Give the same use for a function that itself says where the examples are."""
        return Use(self._books, self.site, layout, silent=self._silent, idle=self._idle)

    def wants(self, value: object) -> bool:
        """Say whether a value's gradient is asked for."""
        return self._books.follows(value)

    def looked_up(self, value: Tensor) -> LookedUp | None:
        """Say which rows of which table a value is, if it is nothing else."""
        return self._books.looked_up.get(id(value))

    def turned(self, value: Tensor) -> Tensor | None:
        """Give the parameter of which a value is a view with its last two axes turned, if it is that."""
        return self._books.turned.get(id(value))

    def plain(self, value: T) -> T:
        """Give a parameter's value without its history."""
        return self._books.plain(value)

    def first(self, tensor: Tensor) -> Tensor:
        """View a tensor with its examples on the first axis."""
        if not self.layout.fits(tensor.shape, self.n):
            raise self.refuse(f"{self.n} examples are no longer on {self.layout.value}")
        return self.layout.first(tensor, self.n)

    def positions(self, tensor: Tensor, features: int = 1) -> Tensor:
        """View a tensor as [examples, positions, features...], of which the last `features` axes are kept."""
        shape = tensor.shape
        if self.layout is _FIRST and len(shape) == features + 2 and shape[0] == self.n:
            return tensor
        first = self.first(tensor)
        return first.reshape(self.n, -1, *first.shape[first.ndim - features :])

    def tap(
        self,
        value: Tensor,
        given: Iterable[Tensor | None],
        forms: Callable[[Tensor], Forms],
        saved: Iterable[Tensor] = (),
    ) -> Tensor:
        """Have `forms` called with the value's gradient, to yield a form for each of the parameters `given`."""
        given = tuple(given)
        self._books.expect(given)
        versions = [(tensor, tensor._version) for tensor in saved]

        def show(gradient: Tensor) -> None:
            if self._idle:
                self._refuse_idle()
            if self._silent:
                if not _nothing(gradient):
                    raise self.refuse(_SILENT)
                self._books.pass_over(given)
                return
            for tensor, version in versions:
                if tensor._version != version:
                    raise self.refuse("its input is changed in place before the gradient is taken")
            self._books.receive(forms(gradient))

        return self._books.tap(value, show)

    def expect(self, given: Iterable[Tensor | None]) -> None:
        """Announce one form for each of the parameters `given`, to come by `collect`."""
        self._books.expect(given)

    def collect(self, forms: Forms) -> None:
        """Hand in forms of which no tap sees the gradient."""
        self._refuse_idle()
        if self._silent:
            raise self.refuse(_SILENT)
        self._books.receive(forms)

    def order(self, packed: Tensor) -> Tensor:
        """Give the example of each row of a packed sequence's first step."""
        where = self._books.whose.of(packed)
        if not isinstance(where, Packed):
            raise self.refuse("a sequence was packed where it could not be seen")
        return torch.arange(self.n) if where.order is None else where.order

    def routing(self, rows: Tensor) -> Routing:
        """Give the routing by which rows came to their experts."""
        routed = self._books.whose.routed(rows)
        if routed is None:
            raise self.refuse("it was not seen how rows came to their experts")
        return routed.routing

    def _refuse_idle(self) -> None:
        if self._idle:
            raise self.refuse("it led nowhere when the model was planned, so that its rule is not proved")

    def refuse(self, why: str) -> NoRule:
        """Say that this use has no exact rule."""
        return NoRule(self.site, why)
