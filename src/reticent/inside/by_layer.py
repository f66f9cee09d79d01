"""Bounds by layer: each layer, or group of parameters, has a clip norm of its own, and their squares add up to one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args, runtime_checkable

import torch
from torch import Tensor

from reticent.errors import SettingError, require
from reticent.gradients.forms.dense import shortest
from reticent.inside.bounds import Clip, finite
from reticent.inside.task import Flat

Share = Literal["equal", "size"]


@dataclass(frozen=True)
class Division:
    """Which part each parameter belongs to, and the share of the sensitivity that each part has.

    Promise: the squares of the shares add up to at most 1. So do the squares of what an example may add to the parts,
    which are at right angles to each other, and the whole is no longer than the sensitivity.
    """

    part_of: Mapping[str, int]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        together = math.fsum(share**2 for share in self.shares)
        require(
            all(0 <= share <= 1 for share in self.shares) and together <= 1 + 1e-9,
            f"the squares of the shares add up to {together:g}: more than 1 would be more than is charged",
        )
        require(all(0 <= part < len(self.shares) for part in self.part_of.values()), "a parameter's part has no share")

    def weights(self, norms: Tensor, sensitivity: float) -> Tensor:
        """The factor of each part of each example's gradient; all 0 where a norm is not finite.

        >>> halves = Division({"a": 0, "b": 1}, (0.6, 0.8))
        >>> halves.weights(torch.tensor([[0.3, 1.6], [1.2, float("nan")]]), sensitivity=1.0)
        tensor([[1.0000, 0.5000],
                [0.0000, 0.0000]])
        """
        limits = torch.tensor(self.shares, dtype=torch.float64, device=norms.device) * sensitivity
        surely = torch.clamp(norms, min=shortest(norms.dtype))
        weights = finite(torch.clamp(limits.to(norms.dtype) / surely, max=1.0), norms)
        return torch.where(torch.isfinite(norms).all(1, keepdim=True), weights, torch.zeros_like(weights))


@runtime_checkable
class Divided(Protocol):
    """A bound that cuts each part of a gradient by itself; where a query does not ask for parts, it is a plain one."""

    def divide(self, shapes: Mapping[str, Sequence[int]]) -> Division:
        """The parts of parameters of these names and shapes: public numbers."""
        ...


@dataclass(frozen=True)
class ByLayer(Clip):
    """Clip the gradient of each layer by itself; together they are no longer than `max_grad_norm`.

    `by` is "layer" (the parameters of one module), "parameter", or the beginnings of names, separated by commas: those
    of one beginning are a group, all others are another. With `share` "equal" all parts have the same clip norm, C over
    the root of their number; with "size" one that grows with the root of the number of its weights.
    """

    by: str = "layer"
    share: Share = "equal"

    def __post_init__(self) -> None:
        require(self.by.strip() != "", "by must be layer, parameter, or beginnings of names, separated by commas")
        require(self.share in get_args(Share), f"share must be equal or size, not {self.share!r}")

    def divide(self, shapes: Mapping[str, Sequence[int]]) -> Division:
        """The layers in the order of the model.

        >>> ByLayer().divide({"0.weight": [2, 3], "0.bias": [2], "2.weight": [1, 2]})
        Division(part_of={'0.weight': 0, '0.bias': 0, '2.weight': 1}, shares=(0.7071067811865476, 0.7071067811865476))
        >>> ByLayer(by="2", share="size").divide({"0.weight": [5, 3], "0.bias": [1], "2.weight": [3, 3]}).shares
        (0.8, 0.6)
        """
        numbers: dict[str, int] = {}
        part_of = {name: numbers.setdefault(self._part(name), len(numbers)) for name in shapes}
        sizes = [0.0] * len(numbers)
        for name, shape in shapes.items():
            sizes[part_of[name]] += math.prod(shape)
        unused = [one for one in self._beginnings() if one not in numbers]
        require(not unused, f"no parameter begins with {unused[:1]}: the names are {', '.join(shapes)}")
        each = sizes if self.share == "size" else [1.0] * len(sizes)
        return Division(part_of, tuple(math.sqrt(one / math.fsum(each)) for one in each))

    def _part(self, name: str) -> str:
        if self.by == "parameter":
            return name
        if self.by == "layer":
            return name.rpartition(".")[0]
        return next((one for one in self._beginnings() if name == one or name.startswith(f"{one}.")), "")

    def _beginnings(self) -> list[str]:
        return [] if self.by in ("layer", "parameter") else [one.strip() for one in self.by.split(",")]


def division_of(bound: Divided, flat: Flat) -> Division:
    """The parts of a model's parameters; every one must be in one.

    The weights are always ours: whoever wrote the bound, no part weighs more than its share.
    """
    shapes = flat.shapes()
    said = bound.divide(shapes)
    found = Division(dict(said.part_of), tuple(said.shares))
    missing = sorted(shapes.keys() - found.part_of.keys())
    require(not missing, f"{bound} leaves out the parameter {missing[:1]}: it would not be bounded")
    return found


def refuse_divided(bound: object, what: str) -> None:
    """Refuse a bound by layer where one number is asked for each example."""
    if isinstance(bound, Divided):
        raise SettingError(f"{what} needs one norm for each example, and {bound} has one for each layer: take Clip()")
