"""The validator as an Opacus script calls it: what is known to mix examples, and what may take its place."""

from __future__ import annotations

import copy
import math

from torch import nn

from reticent.errors import ModelError

_BATCH_NORM = nn.modules.batchnorm._BatchNorm
_INSTANCE_NORM = nn.modules.instancenorm._InstanceNorm


class ModuleValidator:
    """What is known of modules by their type; a run sees by itself, on made-up rows, whether a model mixes examples.

    >>> net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8))
    >>> ModuleValidator.is_valid(net), ModuleValidator.is_valid(ModuleValidator.fix(net))
    (False, True)
    >>> ModuleValidator.fix(net)[1]
    GroupNorm(8, 8, ...)
    """

    @classmethod
    def validate(cls, module: nn.Module, *, strict: bool = False) -> list[ModelError]:
        """The flaws; with `strict`, the first is raised."""
        found = [
            ModelError(f"module {name!r} ({type(part).__name__}) {flaw}: ModuleValidator.fix(model) replaces it")
            for name, part in module.named_modules()
            if (flaw := _flaw(part))
        ]
        if strict and found:
            raise found[0]
        return found

    @classmethod
    def is_valid(cls, module: nn.Module) -> bool:
        """Whether no flaw is known."""
        return not cls.validate(module)

    @classmethod
    def fix(cls, module: nn.Module, **_settings: object) -> nn.Module:
        """A copy with GroupNorm for BatchNorm, its scale and shift kept, and statistics of instances not remembered."""
        found = _instead(copy.deepcopy(module))
        for name, part in list(found.named_modules()):
            if name and _flaw(part):
                path, _, own = name.rpartition(".")
                setattr(found.get_submodule(path), own, _instead(part))
        return found

    @classmethod
    def fix_and_validate(cls, module: nn.Module, **_settings: object) -> nn.Module:
        """The same, and refuse what is left."""
        fixed = cls.fix(module)
        cls.validate(fixed, strict=True)
        return fixed


def _flaw(module: nn.Module) -> str:
    if isinstance(module, _BATCH_NORM) and (module.training or not module.track_running_stats):
        return "mixes the examples of a batch"
    if isinstance(module, _INSTANCE_NORM) and module.track_running_stats and module.training:
        return "keeps statistics of private examples"
    return ""


def _instead(module: nn.Module) -> nn.Module:
    """What takes the place of a module with a flaw; the weights are kept where they mean the same: scale and shift."""
    if not _flaw(module):
        return module
    if isinstance(module, _INSTANCE_NORM):
        module.track_running_stats = False
        module.running_mean = module.running_var = module.num_batches_tracked = None
        return module
    assert isinstance(module, _BATCH_NORM)
    channels = module.num_features
    made = nn.GroupNorm(math.gcd(32, channels), channels, eps=module.eps, affine=module.affine)
    if module.affine:
        made.load_state_dict({"weight": module.weight.detach().clone(), "bias": module.bias.detach().clone()})
    first = next(module.parameters(), None)
    return made.train(module.training) if first is None else made.train(module.training).to(first.device, first.dtype)
