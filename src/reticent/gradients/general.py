"""The exact general path: every example's whole gradient, by `torch.func` where that works, else one by one."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.overrides import TorchFunctionMode

from reticent.errors import ModelError
from reticent.gradients.batches import Batch, map_tensors, rows, size
from reticent.gradients.following import Args, Function, Kwargs
from reticent.gradients.forms.dense import columns, squares
from reticent.gradients.probes import probes
from reticent.gradients.randomness import undisturbed, undo_attempt
from reticent.gradients.recomputing import nothing_recomputed
from reticent.gradients.task import LossTask

Gradients: TypeAlias = dict[str, Tensor]
Path: TypeAlias = Callable[[LossTask, Batch], Gradients]

# Elements of per-example gradient held at once: 128 MB of float32.
HELD = 2**25


class _LossOf(nn.Module):
    """A task as one module, so that `functional_call` reaches the model's parameters."""

    def __init__(self, task: LossTask):
        super().__init__()
        self.model = task.model
        self._task = task

    def forward(self, batch: Batch) -> Tensor:
        return self._task.losses(batch)


class _Watched(TorchFunctionMode):
    """Refuses `tensor.data = ...`: a tensor of the batch that outlives `vmap` ends the process when it is touched.

    What failed is kept: a model that catches it would go another way here than each example goes alone.
    """

    failed: Exception | None = None

    def __torch_function__(
        self, func: Function, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        if func == Tensor.data.__set__:  # type: ignore[attr-defined]
            raise RuntimeError("a forward pass gives a tensor other memory, which `vmap` cannot follow")
        try:
            return func(*args, **(kwargs or {}))
        except Exception as failure:
            self.failed = failure
            raise


def by_vmap(task: LossTask, batch: Batch) -> Gradients:
    """All gradients at once by `vmap(grad)`; random layers draw for each example."""
    whole = _LossOf(task)

    def loss_of_one(parameters: dict[str, Tensor], row: Batch) -> Tensor:
        alone = map_tensors(row, lambda tensor: tensor.unsqueeze(0))
        losses: Tensor = functional_call(whole, parameters, (alone,))
        return losses[0]

    parameters = {f"model.{name}": parameter.detach() for name, parameter in task.parameters.items()}
    with warnings.catch_warnings(), nothing_recomputed(parts=False), _Watched() as watched:
        warnings.filterwarnings("ignore", message="There is a performance drop", category=UserWarning)
        found = vmap(grad(loss_of_one), in_dims=(None, 0), randomness="different")(parameters, batch)
    if watched.failed is not None:
        raise watched.failed
    return {name.removeprefix("model."): gradient for name, gradient in found.items()}


def by_loop(task: LossTask, batch: Batch) -> Gradients:
    """The gradients of one example after another: always possible, always exact, slow."""
    found = [_gradients(task, rows(batch, i, i + 1)) for i in range(size(batch))]
    return {name: torch.stack([one[name] for one in found]) for name in task.parameters}


def _gradients(task: LossTask, one: Batch) -> Gradients:
    with nothing_recomputed(parts=False):
        with torch.enable_grad():
            loss = task.losses(one).sum()
        return gradients_of(task, loss)


def gradients_of(task: LossTask, loss: Tensor, *, again: bool = False) -> Gradients:
    """One loss's gradient for every parameter, 0 where there is none; `again` if more is asked of the same pass."""
    parameters = task.parameters
    found = torch.autograd.grad(loss, list(parameters.values()), retain_graph=again, allow_unused=True)
    return {
        name: torch.zeros_like(parameter) if gradient is None else gradient.to_dense()
        for (name, parameter), gradient in zip(parameters.items(), found, strict=True)
    }


_chosen: weakref.WeakKeyDictionary[nn.Module, Path] = weakref.WeakKeyDictionary()


def path(task: LossTask, batch: Batch) -> Path:
    """Choose between the two paths by trying `vmap` once on rows that are nobody's; kept while the model lives."""
    if task.model not in _chosen:
        _chosen[task.model] = by_loop
        with undisturbed(task.model):
            for tried in probes(task.model, batch, 2):
                try:
                    by_vmap(task, tried)
                except ModelError:
                    raise
                except Exception:  # torch.func raises many kinds; the loop answers, or says what is wrong
                    undo_attempt()
                    continue
                _chosen[task.model] = by_vmap
                break
    return _chosen[task.model]


def held_examples(task: LossTask) -> int:
    """Say how many examples' gradients may be in memory at once."""
    return max(1, HELD // sum(parameter.numel() for parameter in task.parameters.values()))


@dataclass(frozen=True, eq=False)
class Written:
    """Every example's gradient, written out.

    >>> Written({"w": torch.tensor([[3.0, 4.0]])}).norms()
    tensor([5.])
    """

    gradients: Gradients

    def norms(self) -> Tensor:
        """Give the norm over all parameters."""
        return torch.stack([squares(gradient) for gradient in self.gradients.values()]).sum(0).sqrt()

    def columns(self, parts: Mapping[str, int]) -> Tensor:
        """Give the norm over each part of the parameters: examples first."""
        return columns({name: squares(gradient) for name, gradient in self.gradients.items()}, parts)

    def add_to(
        self, totals: Mapping[str, Tensor], norms: Tensor, weights: Tensor, parts: Mapping[str, int] | None = None
    ) -> None:
        """Add the weighted gradients to the totals; an example without a finite norm is left out."""
        good = norms.isfinite()
        for name, gradient in self.gradients.items():
            own = weights if parts is None else weights[:, parts[name]]
            totals[name].detach().add_(torch.tensordot(own[good].to(gradient.dtype), gradient[good], dims=1))


def written_out(task: LossTask, batch: Batch) -> Written:
    """Write out the gradients of a batch by whichever path works for the model."""
    rng = torch.get_rng_state()
    try:
        return Written(path(task, batch)(task, batch))
    except ModelError:
        raise
    except Exception:  # some examples may take a way through the model that `vmap` cannot
        undo_attempt()
        torch.set_rng_state(rng)
        return Written(by_loop(task, batch))
