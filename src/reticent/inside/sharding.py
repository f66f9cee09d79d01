"""Sharding: models that a user has wrapped or cut for several processes, and what of them a run can take."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from reticent.errors import ModelError

WRAPPER = "DistributedDataParallel"
_WRAPPERS = (WRAPPER, "DataParallel", "FullyShardedDataParallel")


def unwrapped(model: nn.Module) -> nn.Module:
    """The module inside a DistributedDataParallel: the run adds up over the ranks itself.

    >>> unwrapped(nn.Linear(1, 1))
    Linear(in_features=1, out_features=1, bias=True)
    """
    inner = getattr(model, "module", None)
    return inner if type(model).__name__ == WRAPPER and isinstance(inner, nn.Module) else model


def refuse_wrapped(model: nn.Module) -> None:
    """Refuse wrappers that divide the examples or the trained parameters by themselves."""
    for path, module in model.named_modules():
        if type(module).__name__ in _WRAPPERS:
            raise ModelError(
                f"module {path!r} is a {type(module).__name__}, which divides the work by itself: give the module "
                "inside it. A run on several processes (torchrun) divides the draws and adds up without it"
            )
    for path, module in model.named_modules():
        frozen = [parameter for parameter in module.parameters() if not parameter.requires_grad]
        if hasattr(module, "set_reshard_after_forward") and frozen and not any(map(cut, frozen)):
            raise ModelError(
                f"module {path!r} stays whole after a pass: call fully_shard(..., reshard_after_forward=True), or the "
                "frozen parameters of all such modules lie on every rank at once"
            )
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and cut(parameter):
            raise ModelError(
                f"the trainable parameter {name!r} is cut over the ranks (fully_shard): the norm of an example's "
                "gradient would lie on several of them. Cut frozen parameters only, and pass the trainable ones to "
                "fully_shard as ignored_params"
            )


def cut(tensor: Tensor) -> bool:
    """Whether each rank has only a part of it (a DTensor).

    >>> cut(nn.Linear(1, 1).weight)
    False
    """
    return hasattr(tensor, "full_tensor")


def cut_up(model: nn.Module) -> bool:
    """Whether some parameter is cut over the ranks: then no rank can pass the model without the others."""
    return any(cut(parameter) for parameter in model.parameters())


def whole_parts(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What of a state every rank has whole."""
    return {name: part for name, part in state.items() if not cut(part)}
