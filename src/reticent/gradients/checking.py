"""What a model must satisfy before it is trained on private examples."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from reticent.errors import ModelError
from reticent.gradients.batches import Batch, PerExampleLoss, chosen, map_tensors, size
from reticent.gradients.general import one_per_example, trainable
from reticent.gradients.randomness import undisturbed

# A gradient of float32 moves this much, relative to itself, when only the shape of the computation changes.
ROUNDING = 1e-3


def check(model: nn.Module, per_example_loss: PerExampleLoss, batch: Batch) -> None:
    """Refuse a model or loss in which one example's gradient is not its own, naming the module and the remedy.

    `batch` is a handful of public or made-up examples. The model is left as it was.

    >>> check(nn.Linear(3, 1), lambda m, x: m(x).sum(1), torch.eye(3))
    >>> check(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), lambda m, x: m(x).sum(1), torch.eye(3))
    Traceback (most recent call last):
    reticent.errors.ModelError: module '1' (BatchNorm1d) mixes examples: ...
    """
    if not trainable(model):
        raise ModelError(f"{type(model).__name__} has no trainable parameter; set requires_grad on those to train")
    for path, module in model.named_modules():
        _refuse_by_type(path, module)
    with undisturbed(model):
        model.train()
        _refuse_kept_statistics(model, per_example_loss, batch)
        _refuse_mixed_examples(model, per_example_loss, _several(batch))


def _refuse_by_type(path: str, module: nn.Module) -> None:
    said = f"module {path!r} ({type(module).__name__})"
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        raise ModelError(f"{said} mixes examples: its statistics come from the whole batch; use nn.GroupNorm instead")
    if isinstance(module, nn.modules.instancenorm._InstanceNorm) and module.track_running_stats:
        raise ModelError(f"{said} keeps statistics of private examples; build it with track_running_stats=False")


def _refuse_kept_statistics(model: nn.Module, loss: PerExampleLoss, batch: Batch) -> None:
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.no_grad():
        one_per_example(loss(model, batch), size(batch))
    for name, buffer in model.named_buffers():
        if not torch.equal(buffer, before[name]):
            path, _, own = name.rpartition(".")
            kind = type(model.get_submodule(path)).__name__
            raise ModelError(
                f"module {path!r} ({kind}) changes its buffer {own!r} while training, which would keep private "
                "examples outside the noise; freeze it with eval() inside forward, or replace the module"
            )


def _several(batch: Batch) -> Batch:
    """At least three rows, since the probe changes some and watches the others."""
    n = size(batch)
    return chosen(batch, torch.arange(max(n, 3)) % n)


def _refuse_mixed_examples(model: nn.Module, loss: PerExampleLoss, batch: Batch) -> None:
    n = size(batch)
    state = torch.get_rng_state()
    for kept in (0, n - 1):
        found = []
        for others in _other_rows(batch, kept):
            torch.set_rng_state(state)  # the same dropout masks, so that only the other rows differ
            found.append(_gradient(model, loss, others, kept))
        for moved in found[1:]:
            for name in moved:
                if _differs(found[0][name], moved[name]):
                    _refuse_mixing(model, name)


def _other_rows(batch: Batch, kept: int) -> Iterator[Batch]:
    """The same row among different others: as given, itself repeated, and disturbed."""
    n = size(batch)
    yield batch
    yield chosen(batch, torch.full((n,), kept))

    def disturb(tensor: Tensor) -> Tensor:
        changed = tensor.roll(1, 0)
        if tensor.is_floating_point():
            changed = changed + torch.randn_like(changed) * (1 + changed.abs())
        changed[kept] = tensor[kept]
        return changed

    yield map_tensors(batch, disturb)


def _gradient(model: nn.Module, loss: PerExampleLoss, batch: Batch, row: int) -> dict[str, Tensor]:
    parameters = trainable(model)
    with torch.enable_grad():
        one = one_per_example(loss(model, batch), size(batch))[row]
    if not one.requires_grad:
        raise ModelError("the loss does not depend on any trainable parameter; is the model called under no_grad?")
    found = torch.autograd.grad(one, list(parameters.values()), allow_unused=True)
    return {name: g for name, g in zip(parameters, found, strict=True) if g is not None}


def _differs(one: Tensor, other: Tensor) -> bool:
    if not (one.isfinite().all() and other.isfinite().all()):
        return False
    return bool((one - other).norm() > ROUNDING * (one.norm() + other.norm()) + 1e-12)


def _refuse_mixing(model: nn.Module, parameter: str) -> None:
    path = parameter.rpartition(".")[0]
    kind = type(model.get_submodule(path)).__name__
    raise ModelError(
        f"the gradient of one example changes with the other examples of its batch, seen at parameter {parameter!r} "
        f"of module {path!r} ({kind}); something after it mixes examples: normalise within an example "
        "(nn.GroupNorm, nn.LayerNorm) and let every loss depend on its own example only"
    )
