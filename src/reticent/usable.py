"""What a run cannot work with, told before it begins."""

from __future__ import annotations

import warnings

from torch.optim import LBFGS, Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from reticent.errors import PrivacyWarning, SettingError
from reticent.inside import Flat
from reticent.methods import Plan


def warn_of_large_delta(delta: float, size: int) -> None:
    """A delta of one in the number of examples promises nothing about any one of them."""
    if delta >= 1 / size:
        message = f"delta is {delta:g}, not below 1/{size}: revealing one whole example at random would satisfy it"
        warnings.warn(message, PrivacyWarning, stacklevel=4)


def refuse_unusable(optimizer: Optimizer, scheduler: LRScheduler | None, flat: Flat, plan: Plan) -> None:
    """Refuse optimizers and schedules that ask the data, train something else, or show candidates to others."""
    if isinstance(optimizer, LBFGS):
        raise SettingError("LBFGS evaluates the loss several times a step, unpaid for: use a first-order optimizer")
    if isinstance(scheduler, ReduceLROnPlateau):
        raise SettingError("ReduceLROnPlateau needs a loss, which is private: use a schedule fixed in advance")
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    trained = {id(p): name for name, p in flat.named()}
    missing = [name for key, name in trained.items() if key not in held]
    if missing:
        raise SettingError(
            f"the optimizer does not hold the trainable parameter {missing[0]!r} of the model: make it from this "
            "model's parameters, or freeze (requires_grad_(False)) what is not to be trained"
        )
    frozen = {id(p) for p in flat.frozen()}
    if held - trained.keys() - frozen:
        raise SettingError("the optimizer holds parameters that are not the model's: make it from this model's own")
    if plan.bundles and (hooks := _hooks(optimizer)):
        raise SettingError(
            f"the optimizer has a {hooks[0]}, which would see candidates that {plan.method.name} drops and hides: "
            "remove it, and look at the model after each step of the run instead"
        )


def _hooks(optimizer: Optimizer) -> list[str]:
    """The kinds of hooks that are called around a step; torch keeps them under these names."""
    kinds = {"_optimizer_step_pre_hooks": "step pre-hook", "_optimizer_step_post_hooks": "step post-hook"}
    return [said for name, said in kinds.items() if getattr(optimizer, name, None)]
