"""Numbers that are read of all examples together, as the longest length: a model may compare them, and do nothing else.

Each example alone must give the same answer, so that its way through the model depends on nobody else.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import NoReturn

from torch import Tensor

from reticent.gradients.following import Function
from reticent.gradients.tape import NoRule

_COMPARED: dict[str, Callable[[float, float], bool]] = {
    "__lt__": operator.lt, "__le__": operator.le, "__gt__": operator.gt, "__ge__": operator.ge,
    "__eq__": operator.eq, "__ne__": operator.ne,
}  # fmt: skip
_REFUSED = """int float complex index bool hash repr str format add radd sub rsub mul rmul truediv rtruediv floordiv
rfloordiv mod rmod pow rpow neg pos abs round trunc floor ceil and rand or ror xor rxor lshift rlshift rshift rrshift
invert divmod rdivmod iter len getitem contains call"""


def agreed(answers: Sequence[bool]) -> bool:
    """The answer that every example alone gives.

    >>> agreed([True, True])
    True
    """
    if all(answers) or not any(answers):
        return all(answers)
    raise NoRule(("a number of all examples", ()), "each alone would take another way through the model")


class Told:
    """Stands for a number of all examples; `own` is what it would be for each of them alone.

    >>> Told([3, 5]) <= 7
    True
    """

    def __init__(self, own: Sequence[float], refuse: Callable[[NoRule], NoRule] = lambda why: why):
        self._own, self._refuse = own, refuse


def _compared(function: Callable[[float, float], bool]) -> Callable[[Told, object], bool]:
    def answer(told: Told, other: object) -> bool:
        if not isinstance(other, int | float):
            _refused(told)
        try:
            return agreed([function(one, other) for one in told._own])
        except NoRule as refusal:
            raise told._refuse(refusal) from None

    return answer


def _refused(told: Told, *_given: object) -> NoReturn:
    raise told._refuse(NoRule(("a number of all examples", ()), "it is used for more than a comparison"))


for _name, _function in _COMPARED.items():
    setattr(Told, _name, _compared(_function))
for _name in _REFUSED.split():
    setattr(Told, f"__{_name}__", _refused)


def told(function: Function, own: Tensor, refuse: Callable[[NoRule], NoRule]) -> bool | Told:
    """What a model hears when it asks: yes or no if all agree, else a number to be compared."""
    each = own.tolist()
    return agreed([bool(one) for one in each]) if function is Tensor.__bool__ else Told(each, refuse)
