"""Clip norms as an Opacus script says them: one for the whole gradient, or a list with one for each trained tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real

from torch import nn
from torch.optim import Optimizer

from reticent.errors import SettingError, require
from reticent.inside import Clip, Division
from reticent.methods import Method, dpsgd, get


@dataclass(frozen=True)
class ByNorms(Clip):
    """Clip each tensor by itself, to the norm that was said for it; together they are as long as the root of squares.

    >>> halves = ByNorms((("weight", 3.0), ("bias", 4.0)))
    >>> halves.together
    5.0
    >>> halves.divide({"weight": [2, 2], "bias": [2]}).shares
    (0.6, 0.8)
    """

    norms: tuple[tuple[str, float], ...]

    def __post_init__(self) -> None:
        wrong = next((f"{norm} for {name}" for name, norm in self.norms if not 0 <= norm < math.inf), None)
        require(wrong is None, f"a clip norm must be 0 or more and finite, not {wrong}")
        require(self.together > 0, "all clip norms are 0: nothing would be learned")

    @property
    def together(self) -> float:
        """The most that one example can move the sum: tensors are at right angles to each other."""
        return math.hypot(*(norm for _, norm in self.norms))

    def divide(self, shapes: Mapping[str, Sequence[int]]) -> Division:
        """A part for each tensor; one without a norm has none, and is refused by the query."""
        part_of = {name: place for place, (name, _) in enumerate(self.norms) if name in shapes}
        return Division(part_of, tuple(norm / self.together for _, norm in self.norms))


def clipped(
    clipping: str, max_grad_norm: float | Sequence[float], noise: float, module: nn.Module, optimizer: Optimizer
) -> Method:
    """DP-SGD with the clipping that a script asks for; one number by itself is the clip norm of the whole.

    >>> from torch.optim import SGD
    >>> net = nn.Linear(2, 1)
    >>> clipped("per_layer", [3.0, 4.0], 1.0, net, SGD(net.parameters(), lr=0.1)).max_grad_norm
    5.0
    """
    if clipping not in ("flat", "per_layer"):
        raise SettingError(
            f"clipping={clipping!r} is not known here: there are 'flat' and 'per_layer', and neither takes the place "
            "of another in silence (for a clip norm that follows the gradients, rt.fit has method='quantile_clip')"
        )
    if not isinstance(max_grad_norm, float | Real):
        require(clipping == "per_layer", "several clip norms are one for each tensor: say clipping='per_layer'")
        bound = ByNorms(_named([float(norm) for norm in max_grad_norm], module, optimizer))
        return replace(dpsgd(noise_multiplier=noise, max_grad_norm=bound.together), name="layer_clip", bound=bound)
    whole = float(max_grad_norm)
    if clipping == "flat":
        return dpsgd(noise_multiplier=noise, max_grad_norm=whole)
    return get("layer_clip", noise_multiplier=noise, max_grad_norm=whole, by="parameter")


def _named(norms: Sequence[float], module: nn.Module, optimizer: Optimizer) -> tuple[tuple[str, float], ...]:
    """The norms by the names of their tensors: a script has them in the order of the optimizer's."""
    names = {id(part): name for name, part in module.named_parameters()}
    held = [names.get(id(part)) for group in optimizer.param_groups for part in group["params"] if part.requires_grad]
    trained = [name for name in held if name is not None]
    require(len(trained) == len(held), "the optimizer holds parameters that are not the model's: make it from its own")
    require(
        len(norms) == len(trained),
        f"max_grad_norm has {len(norms)} clip norms, and the optimizer holds {len(trained)} trained tensors: one for "
        f"each is needed, in the order {', '.join(trained[:4])}{', ...' if len(trained) > 4 else ''}",
    )
    return tuple(zip(trained, norms, strict=True))
