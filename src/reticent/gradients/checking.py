"""What a model and its loss must satisfy before they meet private examples."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from reticent.errors import ModelError
from reticent.gradients.batches import Batch, PerExampleLoss, chosen, map_tensors, size
from reticent.gradients.company import NORMALISE, mixes, refuse_company, runs_on
from reticent.gradients.general import Gradients, gradients_of
from reticent.gradients.mixing import culprit, differs
from reticent.gradients.probes import made_up, remember
from reticent.gradients.randomness import undisturbed
from reticent.gradients.task import LossTask

_POWER_VECTORS = ("_u", "_v", "weight_u", "weight_v")
"""What torch's spectral norms, old and new, turn in every pass."""


def check(
    model: nn.Module,
    per_example_loss: PerExampleLoss,
    batch: Batch,
    *,
    probes: Batch | None = None,
    most: int = 64,
) -> None:
    """Refuse a model or loss in which an example's gradient is not its own, naming the module and the remedy.

    `batch` is a handful of made-up examples; `probes` are public ones, for models that do not run on made-up rows (a
    length of 0, no end token). A row is seen alone, among few, and among `most` others of many kinds: give the
    size of a real micro-batch if that is larger. Every module is checked in the mode it is in: one that is kept in
    eval mode, such as a frozen BatchNorm, is taken for what it does there. The model is left as it was.

    >>> check(nn.Linear(3, 1), lambda m, x: m(x).sum(1), torch.eye(3))
    >>> check(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), lambda m, x: m(x).sum(1), torch.eye(3))
    Traceback (most recent call last):
    reticent.errors.ModelError: module '1' (BatchNorm1d) mixes examples: ...
    >>> check(nn.Linear(3, 1), lambda m, x: m(x).sum(1) / len(x), torch.eye(3))
    Traceback (most recent call last):
    reticent.errors.ModelError: the loss mixes examples: ...
    """
    task = LossTask.of(model, per_example_loss)
    if probes is not None:
        remember(model, probes)
    with undisturbed(model):
        for path, module in model.named_modules():
            _refuse_by_type(f"module {path!r} ({type(module).__name__})", module)
        for rows in _runnable(task, batch, probes):
            _refuse_kept_statistics(task, rows)
            _refuse_mixed_examples(task, _several(rows))
            _refuse_lost_axis(task, rows)
            refuse_company(task, rows, most)


def _runnable(task: LossTask, batch: Batch, probes: Batch | None) -> list[Batch]:
    """The rows that the model runs on: those that are public, and those made up."""
    found: list[Batch] = []
    reasons: list[Exception] = []
    for rows in (probes, batch, made_up(batch, size(batch), ones=True)):
        if rows is None or (found and rows is not batch):
            continue
        try:
            with torch.no_grad():
                task.losses(rows)
            found.append(rows)
        except ModelError:
            raise
        except Exception as reason:  # whatever a model says to rows that are none
            reasons.append(reason)
    if not found:
        reasons[0].add_note("if the model runs on real rows only, give a few public ones as probes=")
        raise reasons[0]
    return found


def _refuse_by_type(said: str, module: nn.Module) -> None:
    if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training:
        raise ModelError(
            f"{said} mixes examples: its statistics come from the whole batch; use nn.GroupNorm instead, or "
            "freeze it: a BatchNorm in eval mode (module.eval()) keeps the statistics it came with"
        )
    if isinstance(module, nn.modules.instancenorm._InstanceNorm) and module.track_running_stats and module.training:
        raise ModelError(f"{said} keeps statistics of private examples; build it with track_running_stats=False")
    if isinstance(module, nn.Embedding | nn.EmbeddingBag):
        if module.max_norm is not None:
            raise ModelError(f"{said} changes its weights by the words it meets; build it without max_norm")
        if module.scale_grad_by_freq:
            raise ModelError(f"{said} divides by counts of the whole batch; build it without scale_grad_by_freq")


def _refuse_kept_statistics(task: LossTask, batch: Batch) -> None:
    model = task.model
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.no_grad():
        task.losses(batch)
    for name, buffer in model.named_buffers():
        if not torch.equal(buffer, before[name]):
            path, _, own = name.rpartition(".")
            kind = type(model.get_submodule(path)).__name__
            if own in _POWER_VECTORS:
                raise ModelError(
                    f"module {path!r} ({kind}) is a spectral norm, which takes a step of its own in every forward pass "
                    f"(buffer {own!r}): make it with torch.nn.utils.parametrizations and keep it in eval mode, "
                    "module.eval(), so that it divides by the norm that it came with; or remove it"
                )
            raise ModelError(
                f"module {path!r} ({kind}) changes its buffer {own!r} when it trains, which keeps something of private "
                f"examples past the noise; {NORMALISE}, or keep that module in eval mode (module.eval())"
            )


def _refuse_lost_axis(task: LossTask, batch: Batch) -> None:
    """A draw may be of one: `.squeeze()` would take its axis away, and the round would fail or count for nothing."""
    one = chosen(batch, torch.tensor([0]))
    try:
        with torch.no_grad():
            task.losses(one)
    except Exception as reason:
        said = str(reason).splitlines()[0] if str(reason) else type(reason).__name__
        raise ModelError(
            f"the model or its loss takes {size(batch)} rows and not one alone, and a draw may be of one ({said}). "
            "Does it call .squeeze(), which takes the axis of the examples away as well? Say which axis: .squeeze(-1)"
        ) from reason


def _several(batch: Batch) -> Batch:
    """At least three rows, since the probe changes some and watches the others."""
    n = size(batch)
    return chosen(batch, torch.arange(max(n, 3)) % n)


def _refuse_mixed_examples(task: LossTask, batch: Batch) -> None:
    rng = torch.get_rng_state()
    for row in (0, size(batch) - 1):
        *given, made_up = _companies(batch, row)
        companies = [*given, made_up] if runs_on(task, made_up) else given
        found = []
        for company in companies:
            torch.set_rng_state(rng)  # the same dropout masks, so that only the other rows differ
            found.append(_gradient(task, company, row))
        for company, gradient in zip(companies[1:], found[1:], strict=True):
            moved = [name for name in gradient if differs(found[0][name], gradient[name])]
            if moved:
                torch.set_rng_state(rng)
                raise mixes(culprit(task, (companies[0], row), (company, row)), f"the gradient (at {moved[0]!r})")


def _companies(batch: Batch, row: int) -> Iterator[Batch]:
    """The same row among different others: those given, copies of itself, and others made up."""
    yield batch
    yield chosen(batch, torch.full((size(batch),), row))

    def made_up(tensor: Tensor) -> Tensor:
        changed = tensor.roll(1, 0)
        if tensor.is_floating_point():
            changed = changed + torch.randn_like(changed) * (1 + changed.abs())
        elif tensor.ndim > 1:
            changed = changed.roll(1, -1)
        changed[row] = tensor[row]
        return changed

    yield map_tensors(batch, made_up)


def _gradient(task: LossTask, batch: Batch, row: int) -> Gradients:
    with torch.enable_grad():
        one = task.losses(batch)[row]
    if not one.requires_grad:
        raise ModelError("the loss depends on no trainable parameter; is the model called under torch.no_grad?")
    return gradients_of(task, one)
