"""The peers: each builds a training step for a case; one that is not installed says so."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.models import Case

Step = Callable[[], object]
CLIP, NOISE, RATE = 1.0, 1.0, 1e-3


class Absent(Exception):  # noqa: N818 - a fact, not a mistake
    """A peer that is not installed, or cannot do a case."""


def sgd(case: Case, *, channels_last: bool = False) -> Step:
    """Plain SGD: forward, backward, update."""
    model, (x, y) = case.build(), case.examples()
    if channels_last:
        if x.ndim != 4:
            raise Absent("not images")
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)

    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def sgd_channels_last(case: Case) -> Step:
    """Plain SGD with the channels last: the best layout for most images."""
    return sgd(case, channels_last=True)


def per_example_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return functional.cross_entropy(model(batch[0]), batch[1], reduction="none")


class _Flat:
    """Parameters, their gradients and the noise as flat buffers."""

    def __init__(self, model: nn.Module):
        parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.values = torch.cat([parameter.detach().flatten() for parameter in parameters.values()])
        self.total = torch.zeros_like(self.values)
        self.into, start = {}, 0
        for name, parameter in parameters.items():
            part = slice(start, start + parameter.numel())
            parameter.data = self.values[part].view(parameter.shape)
            self.into[name] = self.total[part].view(parameter.shape)
            start = part.stop

    def move(self, batch: int, noise: Tensor) -> None:
        """Add noise and take the step."""
        self.take(batch, noise.mul_(NOISE * CLIP).add_(self.total))

    def take(self, batch: int, noisy: Tensor) -> None:
        """Take the step that a noisy sum says."""
        self.values.add_(noisy, alpha=-RATE / batch)
        self.total.zero_()


def clip(norms: Tensor) -> Tensor:
    return (CLIP / norms).clamp(max=1)


def ours(case: Case) -> Step:
    """DP-SGD by Reticent's engine, with the noise that the vault draws."""
    from reticent.gradients import norms_and_sum
    from reticent.inside.lattice import Lattice
    from reticent.inside.randomness import Randomness

    model, batch = case.build(), case.examples()
    flat, randomness, rounds = _Flat(model), Randomness.fresh(), itertools.count()

    def step() -> None:
        norms_and_sum(model, per_example_loss, batch, clip, into=flat.into)
        lattice = Lattice.of(sensitivity=CLIP, std=NOISE * CLIP, size=flat.total.numel())
        flat.take(case.batch, lattice.noised(flat.total, randomness.at(next(rounds), "noise", 0)))

    return step


def ours_whole_run(case: Case) -> Step:
    """A round of `rt.Run`: draw, guard, gradients, ledger (in memory), noise, torch's optimizer."""
    import warnings

    import reticent as rt
    from reticent.errors import PrivacyWarning

    warnings.filterwarnings("ignore", category=PrivacyWarning)  # nothing private is trained on
    model, batch = case.build(), case.examples()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    method = rt.methods.dpsgd(noise_multiplier=NOISE, max_grad_norm=CLIP)
    run = rt.Run(model, optimizer, batch, method=method, batch_size=case.batch, rounds=100_000, seed=0)
    return run.step


def vmap_grad(case: Case) -> Step:
    """DP-SGD by torch.func: every gradient written out."""
    import warnings

    from torch.func import functional_call, grad, vmap

    model, batch = case.build(), case.examples()
    flat, parameters = _Flat(model), {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    warnings.filterwarnings("ignore", message="There is a performance drop")

    def loss(values: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(functional_call(model, values, (x[None],)), y[None])

    gradients_of = vmap(grad(loss), in_dims=(None, 0, 0))

    def step() -> None:
        gradients = gradients_of(parameters, *batch)
        squares = torch.stack([g.flatten(1).square().sum(1) for g in gradients.values()])
        weights = clip(squares.sum(0).sqrt())
        for name, gradient in gradients.items():
            flat.into[name] += torch.tensordot(weights, gradient, dims=1)
        flat.move(case.batch, torch.randn_like(flat.total))

    return step


def _opacus_model(case: Case) -> nn.Module:
    try:
        from opacus.validators import ModuleValidator
    except ImportError:
        raise Absent("opacus is not installed") from None
    return ModuleValidator.fix(case.build())  # puts its own LSTM in place of torch's


def opacus_functorch(case: Case) -> Step:
    """DP-SGD by Opacus with every gradient written out by torch.func."""
    return opacus_hooks(case, mode="functorch")


def opacus_hooks(case: Case, mode: str = "hooks") -> Step:
    """DP-SGD by Opacus with per-example gradients."""
    model = _opacus_model(case)
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer

    (x, y), wrapped = case.examples(), GradSampleModule(model, force_functorch=mode == "functorch")
    optimizer = DPOptimizer(
        torch.optim.SGD(wrapped.parameters(), lr=RATE),
        noise_multiplier=NOISE,
        max_grad_norm=CLIP,
        expected_batch_size=case.batch,
    )

    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(wrapped(x), y).backward()
        optimizer.step()

    return step


def opacus_ghost(case: Case) -> Step:
    """DP-SGD by Opacus with ghost clipping: two backward passes."""
    model = _opacus_model(case)
    from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping
    from opacus.optimizers.optimizer_fast_gradient_clipping import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    x, y = case.examples()
    wrapped = GradSampleModuleFastGradientClipping(model, max_grad_norm=CLIP, use_ghost_clipping=True)
    optimizer = DPOptimizerFastGradientClipping(
        torch.optim.SGD(wrapped.parameters(), lr=RATE),
        noise_multiplier=NOISE,
        max_grad_norm=CLIP,
        expected_batch_size=case.batch,
    )
    loss = DPLossFastGradientClipping(wrapped, optimizer, nn.CrossEntropyLoss(reduction="mean"), "mean")

    def step() -> None:
        optimizer.zero_grad()
        loss(wrapped(x), y).backward()
        optimizer.step()

    return step


def jax_privacy(case: Case) -> Step:
    """DP-SGD by JAX-Privacy, compiled."""
    from benchmarks.in_jax import step_of

    return step_of(case)


PEERS: dict[str, Callable[[Case], Step]] = {
    "sgd": sgd,
    "sgd again": sgd,  # the same work twice: what differs is noise
    "sgd channels last": sgd_channels_last,
    "ours": ours,
    "ours in a run": ours_whole_run,
    "opacus hooks": opacus_hooks,
    "opacus ghost": opacus_ghost,
    "opacus functorch": opacus_functorch,
    "vmap": vmap_grad,
    "jax privacy": jax_privacy,
}
