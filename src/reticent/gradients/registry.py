"""The registry: which rule stands in for which torch function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from reticent.gradients.following import Function

Run = TypeVar("Run", bound=Function)


@dataclass(frozen=True)
class Rule:
    """`run(use, *args, **kwargs)` answers in place of a torch function.

    `located`: it works wherever the examples are; otherwise the function itself says where they must be.
    """

    run: Function
    located: bool = True


RULES: dict[Function, Rule] = {}


def rule(*functions: Function, located: bool = True) -> Callable[[Run], Run]:
    """Register a rule for torch functions that take the same arguments."""

    def register(run: Run) -> Run:
        RULES.update({function: Rule(run, located) for function in functions})
        return run

    return register
