"""The tape: watches one forward pass and finds every use of a trainable parameter, wherever in the model it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from reticent.gradients.layouts import Layout
from reticent.gradients.packing import Packings
from reticent.gradients.registry import RULES, Function
from reticent.gradients.scratch import Scratch

# Where parameters are used: the function's name, and the names of the parameters it was given.
Site: TypeAlias = tuple[str, tuple[str, ...]]
Args: TypeAlias = tuple[object, ...]
Kwargs: TypeAlias = dict[str, object]
T = TypeVar("T")


class NoRule(Exception):  # noqa: N818 - not a mistake: the general path takes over
    """Parameters are used in a way for which there is no exact rule."""

    def __init__(self, site: Site, why: str):
        super().__init__(f"{site[0]}({', '.join(site[1])}): {why}")


@dataclass(frozen=True, eq=False)
class SitePlan:
    """What is known of a model before its passes: where the examples are at each site, and how to run it."""

    layouts: Mapping[Site, Layout]
    channels_last: bool = False
    at_once: int = 1
    scratch: Scratch = field(default_factory=Scratch)


class _Shown(Protocol):
    """What a tap keeps until the gradient comes by."""

    show: Callable[[Tensor], None]


class _Tap(torch.autograd.Function):
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
    return _Tap.apply(value, anchor, show)  # type: ignore[no-any-return,no-untyped-call]


class Tape(TorchFunctionMode, ABC):
    """Sees each torch function that is given a trainable parameter, or a tensor made from parameters only.

    What is made from parameters only is followed like a parameter; `roots` says from which parameters it was made.
    """

    def __init__(self, parameters: Mapping[str, nn.Parameter], n: int, plan: SitePlan):
        super().__init__()
        self.n = n
        self.plan = plan
        self.anchor = torch.zeros((), requires_grad=True)
        self._names = {id(parameter): name for name, parameter in parameters.items()}
        self.packings = Packings()
        self.roots: dict[int, tuple[Tensor, list[nn.Parameter]]] = {}
        self._parameters = {id(parameter): parameter for parameter in parameters.values()}

    def follows(self, value: object) -> bool:
        """Say whether a value is a trainable parameter or made from such only."""
        return id(value) in self._names

    def plain(self, value: T) -> T:
        """Give a value without its history if it is followed."""
        if isinstance(value, list | tuple):
            return cast(T, type(value)(self.plain(item) for item in value))
        return cast(T, value.detach()) if isinstance(value, Tensor) and self.follows(value) else value

    def tap(self, value: Tensor, show: Callable[[Tensor], None]) -> Tensor:
        """Have the gradient of a value shown when the backward pass comes by."""
        return tapped(value, self.anchor, show)

    def __torch_function__(
        self, func: Function, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        kwargs = kwargs or {}
        followed = [value for value in _values(args, kwargs) if id(value) in self._names]
        if not followed:
            result = func(*args, **kwargs)
            if func in Packings.watched:
                self.packings.note(func, args, result)
            return result
        site = (getattr(func, "__name__", str(func)), tuple(self._names[id(value)] for value in followed))
        if _half(args, kwargs):
            raise NoRule(site, "sums in half precision are not exact: one example could move all of their digits")
        if self.plan.layouts.get(site) is not Layout.NOWHERE and self._knows(func, args, kwargs):
            return self.use(site, func, args, kwargs)
        return self._derive(site, func, args, kwargs)

    def _knows(self, func: Function, args: Args, kwargs: Kwargs) -> bool:
        """Say whether there is a rule for this call, and something but parameters to use it on."""
        rule = RULES.get(func)
        return rule is not None and (
            rule.alone or any(isinstance(value, Tensor) and not self.follows(value) for value in _values(args, kwargs))
        )

    @abstractmethod
    def use(self, site: Site, func: Function, args: Args, kwargs: Kwargs) -> object:
        """Answer a call that uses parameters on examples."""

    def _derive(self, site: Site, func: Function, args: Args, kwargs: Kwargs) -> object:
        """Run a function of parameters only, and follow what it gives."""
        values = list(_values(args, kwargs))
        for value in values:
            if isinstance(value, Tensor) and value.requires_grad and not self.follows(value):
                raise NoRule(site, "no rule for this function of parameters and examples")
        result = func(*args, **kwargs)
        roots = {
            id(root): root
            for value in values
            if isinstance(value, Tensor) and self.follows(value)
            for root in self._roots_of(value)
        }
        for value in _values((result,), {}):
            if isinstance(value, Tensor) and value.requires_grad and not self.follows(value):
                self.roots[id(value)] = (value, list(roots.values()))
                self._names[id(value)] = site[1][0]
        return result

    def _roots_of(self, value: Tensor) -> list[nn.Parameter]:
        return self.roots[id(value)][1] if id(value) in self.roots else [self._parameters[id(value)]]

    def name(self, key: int) -> str:
        """Name a followed value by its id."""
        return self._names[key]

    def layout(self, site: Site) -> Layout:
        """Say where the examples are at a site that planning has seen."""
        if site not in self.plan.layouts:
            raise NoRule(site, "not seen when the model was planned")
        return self.plan.layouts[site]


def _half(args: Args, kwargs: Kwargs) -> bool:
    """Whether a function works in half precision, because it is given it or because autocast makes it."""
    given = [value for value in _values(args, kwargs) if isinstance(value, Tensor)]
    return any(torch.is_autocast_enabled(value.device.type) for value in given) or any(
        value.is_floating_point() and value.element_size() < 4 for value in given
    )


def _values(args: Args, kwargs: Kwargs) -> list[object]:
    values = [*args, *kwargs.values()] if kwargs else list(args)
    for value in args:
        if isinstance(value, list | tuple):
            values += value
    return values
