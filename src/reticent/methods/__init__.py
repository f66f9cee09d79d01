"""Methods: one paper, one small file: DP-SGD with a stage replaced; `methods.NAME(...)` makes the one of that name."""

from collections.abc import Callable

from reticent.methods.method import Method
from reticent.methods.planning import Plan, plan
from reticent.methods.registry import abouts, get, listing, names, options

__all__ = ["Method", "Plan", "abouts", "get", "listing", "names", "options", "plan"]


def __getattr__(name: str) -> Callable[..., Method]:
    """The maker of a method, for every name that `names` lists: a method's file is all there is to write."""
    if name.startswith("_") or name not in abouts():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return abouts()[name].make  # type: ignore[return-value]


def __dir__() -> list[str]:
    return sorted([*__all__, *names()])
