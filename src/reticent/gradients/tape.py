"""The tape: watches one forward pass, follows its examples, and finds every use of a trainable parameter."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from reticent.gradients.batches import Batch, map_tensors
from reticent.gradients.following import ABOUT_SHAPES, Args, Function, Kwargs, NotFollowed, Place, Whose
from reticent.gradients.following.follower import given
from reticent.gradients.layouts import Layout
from reticent.gradients.registry import RULES
from reticent.gradients.scratch import Scratch

# Where parameters are used: the function's name, and the names of the parameters it was given.
Site: TypeAlias = tuple[str, tuple[str, ...]]
# A site with the place of the examples there, which is what a proof is about.
Pair: TypeAlias = tuple[Site, Layout]
T = TypeVar("T")


class LookedUp(NamedTuple):
    """Rows of a table of parameters, in an order that is nobody's."""

    table: Tensor
    which: Tensor
    padding: int | None


class NoRule(Exception):  # noqa: N818 - not a mistake: the general path takes over
    """Parameters or examples are used in a way for which there is no exact rule."""

    def __init__(self, site: Site, why: str):
        super().__init__(f"{site[0]}({', '.join(site[1])}): {why}")


@dataclass(frozen=True, eq=False)
class SitePlan:
    """What was proved of a model before its passes, and how to run it; where the examples are, each pass finds anew."""

    proved: frozenset[Pair] = frozenset()
    """Sites that gradients came to, with where the examples were: `prove` compares what became of them."""
    idle: frozenset[Pair] = frozenset()
    """Sites whose output led nowhere, so that nothing was proved there."""
    silent: frozenset[Pair] = frozenset()
    """Sites that only gradients of zero came to, so that nothing was proved there: good for zeros only."""
    ambient: dict[int, Tensor] = field(default_factory=dict)
    spared: bool = False
    """Whether the model asks for parts of it to be calculated again instead of kept."""
    channels_last: bool = False
    losses_channels_last: bool = False
    """Whether losses alone may have all images so: then convolutions that are not trained give them so, too."""
    at_once: int = 1
    scratch: Scratch = field(default_factory=Scratch)
    hopeless: set[str] = field(default_factory=set)
    """What went wrong in a pass and was not mended by planning again."""


class _Shown(Protocol):
    """What a tap keeps until the gradient comes by."""

    show: Callable[[Tensor], None]


class Tap(torch.autograd.Function):
    """Identity that shows the gradient passing by; the anchor makes it part of the graph."""

    @staticmethod
    def forward(ctx: _Shown, value: Tensor, _anchor: Tensor, show: Callable[[Tensor], None]) -> Tensor:
        ctx.show = show
        return value.data  # a handle of its own, since the model may change it in place

    @staticmethod
    def backward(ctx: _Shown, gradient: Tensor) -> tuple[Tensor, None, None]:
        if torch.is_grad_enabled():
            raise NoRule(("a second derivative", ()), "gradients of gradients have no rule")
        ctx.show(gradient)
        return gradient, None, None


def tapped(value: Tensor, anchor: Tensor, show: Callable[[Tensor], None]) -> Tensor:
    """Have the gradient of a value shown when a backward pass to the anchor comes by."""
    return Tap.apply(value, anchor, show)  # type: ignore[no-any-return,no-untyped-call]


_TELLING = {Tensor.item, Tensor.__bool__}
_LISTS = (list, tuple)


class Tape(TorchFunctionMode, ABC):
    """Sees each torch function, where the examples go in it, and whether it is given a trainable parameter.

    What is made from parameters only is followed like a parameter; `roots` says from which parameters it was made.
    """

    def __init__(self, parameters: Mapping[str, nn.Parameter], n: int, plan: SitePlan, *, curious: bool = False):
        super().__init__()
        self.n = n
        self.plan = plan
        self._eager = ExitStack()
        self.whose = Whose(n, plan.ambient, curious=curious)
        self.anchor = torch.zeros((), requires_grad=True)
        self._names = {id(parameter): name for name, parameter in parameters.items()}
        self.roots: dict[int, tuple[Tensor, list[nn.Parameter]]] = {}
        self.told = False
        """Whether something of all examples together was asked, and answered."""
        self._refused: NoRule | None = None
        self.looked_up: dict[int, LookedUp] = {}
        self.turned: dict[int, Tensor] = {}
        """What a followed value is a view of, with its last two axes turned, by its id."""
        self._parameters = {id(parameter): parameter for parameter in parameters.values()}

    def __enter__(self) -> Self:
        """Watch from now on; what was compiled runs as it was written, since fused functions cannot be followed."""
        if "torch._dynamo" in sys.modules:
            self._eager.enter_context(torch.compiler.set_stance("force_eager"))
        return super().__enter__()  # type: ignore[no-any-return,no-untyped-call]

    def __exit__(self, *failure: Any) -> None:
        super().__exit__(*failure)  # type: ignore[no-untyped-call]
        self._eager.close()

    def begin(self, batch: Batch) -> Batch:
        """Give the batch as the pass must see it, so that its examples are followed."""
        return map_tensors(batch, self.whose.begin)

    def end(self, losses: Tensor) -> None:
        """Refuse losses that are not each of their own example, and a pass in which something was refused."""
        if self._refused is not None:  # and the model went on as if it had been told so: others may have decided it
            raise self._refused
        try:
            where = self.whose.of(losses)
        except NotFollowed as lost:
            raise NoRule(("the loss", ()), str(lost)) from None
        if not isinstance(where, Place) or not where.bound or not where.same(Place(0)):
            raise NoRule(("the loss", ()), "it is not known whose each loss is")

    def refuse(self, why: NoRule) -> NoRule:
        """Note what ends the pass, even where the model catches it."""
        self._refused = why
        return why

    def follows(self, value: object) -> bool:
        """Say whether a value is a trainable parameter or made from such only."""
        return id(value) in self._names

    def plain(self, value: T) -> T:
        """Give a value without its history if it is followed."""
        if isinstance(value, Tensor):
            return cast(T, value.detach()) if id(value) in self._names else value
        if isinstance(value, _LISTS):
            return cast(T, type(value)(self.plain(item) for item in value))
        return value

    def tap(self, value: Tensor, show: Callable[[Tensor], None]) -> Tensor:
        """Have the gradient of a value shown when the backward pass comes by."""
        return tapped(value, self.anchor, show)

    def __torch_function__(
        self, func: Function, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        if func in ABOUT_SHAPES:
            return func(*args, **kwargs) if kwargs else func(*args)
        if func is Tensor.__contains__:
            return self._contains(*args)
        try:
            return self._seen(func, args, kwargs or {})
        except NoRule as refusal:
            raise self.refuse(refusal) from None

    def _contains(self, values: object, one: object) -> object:
        """`one in values`, as torch means it: a question about all examples together."""
        found = self.__torch_function__(torch.eq, (), (values, one))
        return self.__torch_function__(Tensor.__bool__, (), (self.__torch_function__(torch.any, (), (found,)),))

    def _seen(self, func: Function, args: Args, kwargs: Kwargs) -> object:
        names = self._names
        followed = [value for value in _values(args, kwargs) if id(value) in names]
        if func in _TELLING and (own := self.whose.alone(args[0])) is not None:
            return self.tell(func, own)
        try:
            if followed:
                return self._with_parameters(self._site(func, followed), func, args, kwargs)
            result = func(*args, **kwargs) if kwargs else func(*args)
            self.whose.mark(result, self.whose.after(func, args, kwargs, result), args[0] if args else None)
        except NotFollowed as lost:
            raise NoRule(self._site(func, followed), str(lost)) from None
        return result

    def _site(self, func: Function, followed: list[object]) -> Site:
        name = getattr(func, "__name__", None) or str(func)
        return name, tuple(self._names[id(value)] for value in followed)

    def _with_parameters(self, site: Site, func: Function, args: Args, kwargs: Kwargs) -> object:
        if _half(args, kwargs):
            raise NoRule(site, "sums in half precision are not exact: one example could move all of their digits")
        answer = self.whose.after(func, args, kwargs)
        if answer is None:
            return self._derive(site, func, args, kwargs)
        rule = RULES.get(func)
        if rule is None:
            raise NoRule(site, "no rule for this function of parameters and examples")
        layout: Layout | None = Layout.FIRST
        if isinstance(answer, Place):
            if not answer.bound:  # from here on each example has a gradient there
                answer = replace(answer, bound=True)
            layout = Layout.of(answer) if rule.located else layout
        elif rule.located:
            raise NoRule(site, "what was sorted or packed is used before it is put back")
        if layout is None:
            raise NoRule(site, "the examples are where no rule expects them")
        result = self.use(site, layout, func, args, kwargs)
        self.whose.mark(result, answer, args[0] if args else None)
        return result

    @abstractmethod
    def tell(self, func: Function, own: Tensor) -> object:
        """Answer a question about all examples together, of which `own` is what each alone would say."""

    @abstractmethod
    def use(self, site: Site, layout: Layout, func: Function, args: Args, kwargs: Kwargs) -> object:
        """Answer a call that uses parameters on examples."""

    def _derive(self, site: Site, func: Function, args: Args, kwargs: Kwargs) -> object:
        """Run a function of parameters only, and follow what it gives."""
        values = list(_values(args, kwargs))
        for value in values:
            if isinstance(value, Tensor) and value.requires_grad and not self.follows(value):
                raise NoRule(site, "no rule for this function of parameters and examples")
        given = [value for value in values if isinstance(value, Tensor) and self.follows(value)]
        made = [(value, value._version) for value in given if id(value) in self.roots]
        result = func(*args, **kwargs)
        if any(value._version != version for value, version in made):
            raise NoRule(site, "what is made from parameters is changed in place")  # and views of it with it
        roots = {id(root): root for value in given for root in self._roots_of(value)}
        for value in _values((result,), {}):
            if isinstance(value, Tensor) and value.requires_grad and not self.follows(value):
                self.roots[id(value)] = (value, list(roots.values()))
                self._names[id(value)] = site[1][0]
        if func is functional.embedding and self.follows(result):  # then it is kept, and its id with it
            self._note_rows(result, args, kwargs)
        if func is Tensor.transpose and self.follows(result) and set(args[1:]) == {-2, -1}:
            self.turned[id(result)] = given[0]
        self.whose.mark(result, None, args[0] if args else None)
        return result

    def _note_rows(self, result: object, args: Args, kwargs: Kwargs) -> None:
        index, table, padding, longest, _, by_count = (
            given(args, kwargs, i, name)
            for i, name in enumerate(("input", "weight", "padding_idx", "max_norm", "", "scale_grad_by_freq"))
        )
        if longest is None and not by_count and isinstance(index, Tensor) and isinstance(table, Tensor):
            self.looked_up[id(result)] = LookedUp(table, index, padding if isinstance(padding, int) else None)

    def _roots_of(self, value: Tensor) -> list[nn.Parameter]:
        return self.roots[id(value)][1] if id(value) in self.roots else [self._parameters[id(value)]]

    def name(self, key: int) -> str:
        """Name a followed value by its id."""
        return self._names[key]


def _half(args: Args, kwargs: Kwargs) -> bool:
    """Whether a function works in half precision, because it is given it or because autocast makes it."""
    kinds = set()
    for value in _values(args, kwargs):
        if isinstance(value, Tensor):
            if value.element_size() < 4 and value.is_floating_point():
                return True
            kinds.add("cpu" if value.is_cpu else value.device.type)
    return any(map(torch.is_autocast_enabled, kinds))


def _values(args: Args, kwargs: Kwargs) -> list[object]:
    values = [*args, *kwargs.values()] if kwargs else list(args)
    for value in args:
        if isinstance(value, _LISTS):
            values += value
    return values
