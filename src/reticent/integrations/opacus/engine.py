"""The engine as an Opacus script calls it: model, optimizer and loader in, the same three out, one run behind them."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Generator, Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from reticent.accounting import Budget, Event, Guarantee, price
from reticent.errors import DataError, SettingError
from reticent.inside import Randomness, RoundSettings
from reticent.integrations.opacus.accountant import OpacusAccountant, least_noise, tally_of
from reticent.integrations.opacus.listening import Value
from reticent.integrations.opacus.loader import DPDataLoader, refuse_other_draws, say_draws, steps_in, store_of
from reticent.integrations.opacus.module import GradSampleModule
from reticent.integrations.opacus.norms import clipped
from reticent.integrations.opacus.optimizer import DPOptimizer
from reticent.integrations.opacus.own_loop import OWN_LOOP, OwnLoop, Terms
from reticent.integrations.opacus.validators import ModuleValidator
from reticent.methods.planning import default_delta
from reticent.origins import marked
from reticent.reading import reading
from reticent.run import Run

MOST_EPOCHS = 1000
"""A script that does not say how long it trains is planned for no more than this."""
OPEN_PLAN = "the number of steps was fixed without looking at the examples: it was not told beforehand"

BROUGHT = (
    "what a checkpoint brought is all that was released before, and was released as its history says: Poisson draws, "
    "each gradient that of one example, noise as good as real numbers"
)

Returned = tuple[Value, ...]


@dataclass(frozen=True)
class Summed:
    """The released sum as it is, for a loss that is a sum over the batch."""

    def apply(self, released: Tensor, settings: RoundSettings) -> Tensor:  # noqa: ARG002 - nothing is divided
        """The sum."""
        return released


class PrivacyEngine:
    """Makes a training loop private, under the names that Opacus has for it.

    Every step is a round of one `rt.Run`: drawn by the vault, bounded, written into the ledger, and then noised. What
    is asked for and not proved, or not there, is refused with the reason.

    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> loader = DataLoader(TensorDataset(torch.randn(50, 2), torch.zeros(50, dtype=torch.long)), batch_size=10)
    >>> model, engine = nn.Linear(2, 2), PrivacyEngine(accountant="rdp")
    >>> model, optimizer, loader = engine.make_private(
    ...     module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), data_loader=loader,
    ...     noise_multiplier=1.0, max_grad_norm=1.0)
    >>> for x, y in loader:
    ...     optimizer.zero_grad()
    ...     nn.functional.cross_entropy(model(x), y).backward()
    ...     optimizer.step()
    >>> engine.accountant.history
    [(1.0, 0.2, 5)]
    """

    def __init__(self, *, accountant: str = "prv", secure_mode: bool = False):
        self.accountant = OpacusAccountant(accountant)
        self.secure_mode = secure_mode  # noise is always made from a secret key on a lattice: there is no other mode
        self._loops: list[OwnLoop] = []

    def make_private(
        self,
        *,
        module: nn.Module,
        optimizer: Optimizer,
        data_loader: DataLoader[Value],
        noise_multiplier: float,
        max_grad_norm: float | Sequence[float],
        criterion: Callable[..., Value] | None = None,
        batch_first: bool = True,
        loss_reduction: str = "mean",
        poisson_sampling: bool = True,
        clipping: str = "flat",
        noise_generator: Generator | None = None,
        grad_sample_mode: str = "hooks",
        epochs: float | None = None,
        size: int | None = None,
        **others: Value,
    ) -> Returned:
        """Model, optimizer and loader whose loop is private; `epochs` fixes its length, `size` declares the examples.

        Under grad_sample_mode="ghost" the criterion comes back third, as Opacus has it; it is the one given.
        """
        refuse_other_draws(data_loader, poisson=poisson_sampling)
        _refuse_unlike(batch_first, loss_reduction, others)
        ModuleValidator.validate(module, strict=True)
        ghost = _noted_mode(grad_sample_mode)
        examples = store_of(data_loader)
        public = len(examples) if size is None else size
        steps = steps_in(data_loader, public)
        rounds = math.ceil((MOST_EPOCHS if epochs is None else epochs) * steps)
        inner = module.to_standard_module() if isinstance(module, GradSampleModule) else module
        own = optimizer.original_optimizer if isinstance(optimizer, DPOptimizer) else optimizer
        method = clipped(clipping, max_grad_norm, noise_multiplier, inner, own)
        method = method if loss_reduction == "mean" else replace(method, direction=Summed())
        settings = RoundSettings(public, public / steps, method.max_grad_norm, noise_multiplier)
        self._refuse_strangers(inner)

        def run(loss: object, keys: Randomness, most: int | None) -> Run:
            return Run(
                inner,
                own,
                examples,
                method=method,
                batch_size=settings.batch_size,
                size=size,
                rounds=rounds,
                budget=Budget(math.inf, default_delta(public), accountant="rdp"),
                loss=loss,  # type: ignore[arg-type]
                seed=keys,
                already=tuple(self._already()),
                initial=self._before(inner) or None,
                max_physical_batch_size=most,
            )

        seed = None if noise_generator is None else noise_generator.initial_seed()
        keys = Randomness.fresh() if seed is None else Randomness.from_seed(seed)
        reduction: Value = loss_reduction
        terms = Terms(inner, own, examples, method, settings, rounds, epochs is not None, reduction, criterion, run)
        loop = OwnLoop(terms, keys)
        self._loops.append(loop)
        self.accountant.follow(lambda: None if loop.run is None else loop.run.ledger)
        say_draws(data_loader, steps)
        made = GradSampleModule(inner), DPOptimizer(own, loop), DPDataLoader(data_loader, loop, steps)
        return (*made[:2], criterion, made[2]) if ghost else made

    def make_private_with_epsilon(
        self,
        *,
        module: nn.Module,
        optimizer: Optimizer,
        data_loader: DataLoader[Value],
        target_epsilon: float,
        target_delta: float,
        epochs: float,
        size: int | None = None,
        **settings: Value,
    ) -> Returned:
        """The same with the least noise that keeps (target_epsilon, target_delta) for so many epochs."""
        refuse_other_draws(data_loader, poisson=settings.get("poisson_sampling", True))
        steps = steps_in(data_loader, len(data_loader.dataset) if size is None else size)  # type: ignore[arg-type]
        name, before = self.accountant.mechanism(), self.accountant.history
        rounds = math.ceil(epochs * steps)
        noise = least_noise(before, 1 / steps, rounds, target_epsilon, target_delta, name)
        return self.make_private(
            module=module,
            optimizer=optimizer,
            data_loader=data_loader,
            noise_multiplier=noise,
            epochs=epochs,
            size=size,
            **settings,
        )

    def get_epsilon(self, delta: float) -> float:
        """Epsilon of all steps so far, if exactly so many had been planned; see `guarantee`."""
        return self.accountant.get_epsilon(delta)

    def guarantee(self, delta: float) -> Guarantee:
        """What may be said of the model now, and what that takes for granted; the tightest price that is proved."""
        begun = [(loop.run, loop.terms.planned) for loop in self._loops if loop.run is not None]
        if not begun:
            raise SettingError("nothing was released yet: take a step, and ask then")
        events = Counter(tally_of(self.accountant.history))
        for one, planned in begun:  # what may still come is a part of the promise
            if planned:
                events.update(one.plan.tally(one.plan.rounds - len(one.ledger)))
        run, found = begun[-1][0], [one.plan.adjacency for one, _ in begun]
        counted = "zero-out" in found or self.accountant.brought  # of a file nobody knows where its numbers come from
        cost = price(events, delta, adjacency="zero-out" if counted else found[0])
        assumes = (OWN_LOOP, *(() if all(planned for _, planned in begun) else (OPEN_PLAN,)))
        assumes += (BROUGHT,) if self.accountant.brought else ()
        seeded = any(one.guarantee().seeded for one, _ in begun)
        return replace(run.plan, price=cost).guarantee(seeded=seeded, assumes=assumes)

    def _before(self, module: nn.Module) -> list[Run]:
        """The runs of this engine that have trained a part of a module."""
        runs = [loop.run for loop in self._loops if loop.run is not None]
        return [run for run in runs if run.lineage.runs.keys() & marked(module).runs.keys()]

    def _refuse_strangers(self, module: nn.Module) -> None:
        """Refuse weights that somebody else has trained privately: their cost would be left out."""
        known = {name for run in self._before(module) for name in run.lineage.runs}
        if marked(module).runs.keys() - known:
            raise SettingError(
                "a private run that is none of this engine has trained this module: what it cost would be left out. "
                "Use the engine that trained it, or save_checkpoint there, and here load_checkpoint into a new module"
            )

    def _already(self) -> list[Event]:
        return [event for event, count in tally_of(self.accountant.history).items() for _ in range(count)]

    @staticmethod
    def is_compatible(module: nn.Module) -> bool:
        """Whether a module has no part that is known to mix examples."""
        return ModuleValidator.is_valid(module)

    @staticmethod
    def get_compatible_module(module: nn.Module) -> nn.Module:
        """The module with such parts replaced."""
        return ModuleValidator.fix(module)

    def save_checkpoint(
        self,
        path: str | Path,
        *,
        module: nn.Module,
        optimizer: Optimizer | None = None,
        checkpoint_dict: Mapping[str, Value] | None = None,
        **_settings: Value,
    ) -> None:
        """Write weights, optimizer and history into one file, in the form that Opacus reads too."""
        told: dict[str, Value] = dict(checkpoint_dict or {})
        told["module_state_dict"] = module.state_dict()
        told["privacy_accountant_state_dict"] = self.accountant.state_dict()
        if optimizer is not None:
            told["optimizer_state_dict"] = optimizer.state_dict()
        torch.save(told, path)

    def load_checkpoint(
        self, path: str | Path, *, module: nn.Module, optimizer: Optimizer | None = None, **_settings: Value
    ) -> dict[str, Value]:
        """Read such a file, Opacus' own as well: what it says was released counts from then on."""
        with reading(path, "give a file that save_checkpoint of a privacy engine wrote"):
            told = torch.load(path, map_location="cpu", weights_only=True)
        needed = ("privacy_accountant_state_dict", "module_state_dict")
        lacking = [name for name in needed if not isinstance(told, dict) or name not in told]
        if lacking:
            raise DataError(f"the file is no checkpoint of a privacy engine: it has no {lacking[0]}")
        module.load_state_dict(told["module_state_dict"])
        self.accountant.load_state_dict(told["privacy_accountant_state_dict"])
        if optimizer is not None and "optimizer_state_dict" in told:
            optimizer.load_state_dict(told["optimizer_state_dict"])
        return dict(told)


def _refuse_unlike(batch_first: bool, reduction: str, others: Mapping[str, Value]) -> None:
    """Refuse what would silently become something else."""
    if not batch_first:
        raise SettingError(
            "batch_first=False: the first axis of every tensor must be the example; turn them in the dataset"
        )
    if reduction not in ("mean", "sum"):
        raise SettingError(f"loss_reduction must be 'mean' or 'sum', not {reduction!r}")
    unknown = [name for name, value in others.items() if value not in (None, False, True)]
    if unknown:
        raise SettingError(f"{unknown[0]} is not supported here: leave it out (docs/opacus.md says what there is)")


def _noted_mode(mode: str) -> bool:
    """Whether the criterion comes back too; one line where a mode makes no difference."""
    if mode not in ("hooks", "functorch", "ew", "ghost"):
        raise SettingError(f"grad_sample_mode={mode!r} is not known: leave it out, gradients are taken the same way")
    if mode != "hooks":
        print(f"reticent: grad_sample_mode={mode!r} makes no difference: norms are exact either way", file=sys.stderr)
    return mode == "ghost"
