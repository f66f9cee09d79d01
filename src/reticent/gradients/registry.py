"""The registry: which rule stands in for which torch function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

Function: TypeAlias = Callable[..., object]
Run = TypeVar("Run", bound=Function)


@dataclass(frozen=True)
class Rule:
    """`run(use, *args, **kwargs)` answers in place of a torch function.

    `located`: planning must find where the examples are in its output; otherwise the function itself says so.
    `alone`: it may bring parameters to the examples without another tensor, as `expand` does.
    """

    run: Function
    located: bool = True
    alone: bool = False


RULES: dict[Function, Rule] = {}


def rule(*functions: Function, located: bool = True, alone: bool = False) -> Callable[[Run], Run]:
    """Register a rule for torch functions that take the same arguments."""

    def register(run: Run) -> Run:
        RULES.update({function: Rule(run, located, alone) for function in functions})
        return run

    return register
