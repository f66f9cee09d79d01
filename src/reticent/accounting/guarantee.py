"""A guarantee: what may be said about a run, in one line and in JSON."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any, Literal

from reticent.accounting.adjacency import Adjacency, Unit, check_unit, in_words, read_adjacency
from reticent.accounting.pricing import Price

Status = Literal["proved", "as_claimed", "none"]

PRIVATE_TIMES = ("per_accepted", "best_trial", "filter")
"""Routes on which time tells of the examples: hidden attempts or trials, and draws or noise that follow their norms."""
LETTERS = {"per_attempt": "S", "per_accepted": "C", "naive": "F"}
"""How docs/accounting.md and older files call the routes of selective release."""


@dataclass(frozen=True)
class Guarantee:
    """What is proved (or only claimed, or nothing) about everything a run released."""

    status: Status
    epsilon: float
    delta: float
    adjacency: Adjacency = "zero-out"
    accountant: str = ""
    route: str = ""
    order: float | None = None
    rdp: float | None = None
    pld: float | None = None
    covers: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    seeded: bool = False
    why: str = ""
    as_claimed: dict[str, Any] | None = None
    unit: Unit = "example"
    """Whose contribution is hidden: one example's, or all rows of one person."""

    def __str__(self) -> str:
        """One line, epsilon rounded up.

        >>> print(Guarantee("proved", 2.991, 1e-5, "add-or-remove", accountant="pld"))
        (3.00, 1e-05)-DP, add or remove one example, proved (PLD)
        >>> print(Guarantee("none", math.inf, 1e-5, why="the test has no noise"))
        no differential privacy: the test has no noise
        """
        if self.status == "none" or math.isinf(self.epsilon):
            return f"no differential privacy: {self.why or 'nothing is proved'}"
        how = {"proved": f"proved ({self.accountant.upper()})", "as_claimed": "as claimed by the paper"}[self.status]
        line = f"({round_up(self.epsilon)}, {delta_up(self.delta)})-DP, {in_words(self.adjacency, self.unit)}, {how}"
        return line + ("; seeded: for reproduction, not for release" if self.seeded else "")

    @property
    def time_is_private(self) -> bool:
        """Whether nobody may learn how long the run took; a seeded run is not for release anyway.

        >>> Guarantee("proved", 1.0, 1e-5, route="per_accepted").time_is_private
        True
        """
        return self.route in PRIVATE_TIMES and not self.seeded

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; an infinite number is null.

        >>> Guarantee("none", math.inf, 1e-5).to_json()["epsilon"] is None
        True
        """
        data = dataclasses.asdict(self) | {"route": LETTERS.get(self.route, self.route), "route_name": self.route}
        return {name: _plain(value) for name, value in data.items()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Guarantee:
        """The guarantee that `to_json` wrote.

        >>> Guarantee.from_json(Guarantee("none", math.inf, 1e-5).to_json()) == Guarantee("none", math.inf, 1e-5)
        True
        """
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
        }
        if values["epsilon"] is None:
            values["epsilon"] = math.inf
        values["adjacency"] = read_adjacency(values.get("adjacency", "zero-out"))
        values["unit"] = check_unit(values.get("unit", "example"))
        names = {letter: name for name, letter in LETTERS.items()}
        values["route"] = values.pop("route_name", names.get(values["route"], values["route"]))
        return cls(**values)

    @classmethod
    def of(cls, price: Price, **rest: Any) -> Guarantee:
        """What a price proves; no finite price: no guarantee, and why.

        >>> Guarantee.of(Price(math.inf, 1e-5, "none", None, None, None, "no noise")).status
        'none'
        """
        status: Status = "proved" if math.isfinite(price.epsilon) else "none"
        return cls(status, **(dataclasses.asdict(price) | rest))


def round_up(epsilon: float, digits: int = 2) -> str:
    """Epsilon in print: never below the number itself.

    >>> round_up(2.991), round_up(3.0), round_up(3.0000000049), round_up(0.00123), round_up(123.401)
    ('3.00', '3.00', '3.01', '0.0013', '123.41')
    """
    if 0 < epsilon < 0.1:
        digits = 1 - math.floor(math.log10(epsilon))
    # Of the shortest decimal that is the number: the float nearest to 0.1 is above it, and yet prints as 0.1.
    return str(Decimal(repr(float(epsilon))).quantize(Decimal(1).scaleb(-digits), ROUND_CEILING))


def delta_up(delta: float) -> str:
    """Delta in print, of four digits: never below the number itself.

    >>> delta_up(1e-5), delta_up(1.00049e-5), delta_up(1 / 600_000)
    ('1e-05', '1.001e-05', '1.667e-06')
    """
    exact = Decimal(repr(float(delta)))
    return f"{float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 3), ROUND_CEILING)):.4g}"


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return value
