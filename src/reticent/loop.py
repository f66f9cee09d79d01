"""The one loop: draw, ask, release, step, settle; what is dropped goes back to where it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from reticent.inside import Randomness, RoundSettings, Task, Vault
from reticent.inside.kinds import fits
from reticent.inside.randomness import torch_seeded
from reticent.inside.store import as_bytes
from reticent.methods import Method
from reticent.outside import Averaged, Charge, Listening, Open, Outcome, Proposal, Remembered, Remembering, Trial
from reticent.standing import Standing


@dataclass(frozen=True, eq=False)
class Loop:
    """All that takes part in a round; nothing of it changes from round to round."""

    method: Method
    vault: Vault
    task: Task
    optimizer: Optimizer
    scheduler: LRScheduler | None
    randomness: Randomness
    checked: Callable[[], None]
    """Refuses a model that mixes examples in the mode it is in now."""

    def round(self, standing: Standing) -> Standing:
        """One round: candidates are tried until one is kept, or as many as the gate allows."""
        method, vault, diagnostics = self.method, self.vault, self.task.diagnostics
        self.task.flat.refuse_moved()
        self.checked()
        if diagnostics is not None:
            diagnostics.begin(standing.number)
        with vault.round(standing.number), self._known_chance(standing.number):
            now, lasting = method.turned(standing.settings, standing.number), standing.settings
            if fits(method.control, Listening):
                now = lasting = method.control.listen(now, vault, self.task)
            tried, outcome, remembered = 0, Outcome(kept=False), standing.remembered
            charge = method.charge(now)
            with self._bundled(charge, remembered), self._whole():
                while tried < method.gate.candidates and not outcome.kept:
                    here = replace(standing, rejections=standing.rejections + tried, remembered=remembered)
                    outcome, remembered = self._candidate(now, here, tried, hidden=bool(charge.covers))
                    tried += 1
            if diagnostics is not None:
                diagnostics.settled(attempts=tried, kept=outcome.kept)
        if outcome.noise_multiplier is not None:
            lasting = replace(lasting, noise_multiplier=outcome.noise_multiplier)
        if outcome.max_grad_norm is not None:
            lasting = replace(lasting, max_grad_norm=outcome.max_grad_norm)
        return standing.after(kept=outcome.kept, settings=lasting, remembered=remembered)

    def _candidate(
        self, settings: RoundSettings, standing: Standing, number: int, *, hidden: bool
    ) -> tuple[Outcome, Remembered]:
        """One candidate: it is in the model while the gate judges it; dropped, everything goes back."""
        method, vault, task = self.method, self.vault, self.task
        with Trial(task.flat, self.optimizer, self.scheduler, hidden=hidden) as trial:
            draw = vault.draw(method.sampler, settings)
            query = method.query(task, method.bound, settings)
            with self._looking_ahead(standing.remembered):
                sealed = vault.ask(query, draw)
            released = vault.release(sealed, method.noise(settings.noise_multiplier))
            whole = getattr(method.direction, "whole", False)
            gradient = released if whole else released[: len(task.flat.vector)]  # what is beside it is for the gate
            direction, remembered = self._direction(gradient, settings, trial.before, standing.remembered)
            task.flat.set_grad(direction)
            self.optimizer.step()
            if self.scheduler is not None:
                self.scheduler.step()
            proposal = Proposal(
                vault=vault,
                task=task,
                settings=settings,
                query=query,
                sealed=sealed,
                released=released,
                before=trial.before,
                kept=standing.kept,
                rejections=standing.rejections,
                coin=self.randomness.number(standing.number, "gate", number),
            )
            outcome = method.gate.settle(proposal)
            if outcome.kept:
                trial.keep(outcome.place)
            elif outcome.state_stays:
                trial.keep_state()
        return outcome, remembered if outcome.kept or outcome.state_stays else standing.remembered

    def _looking_ahead(self, remembered: Remembered) -> AbstractContextManager[None]:
        """Where the gradient is asked for: at the model's place, unless the direction names another."""
        direction, flat = self.method.direction, self.task.flat
        if not isinstance(direction, Remembering):
            return nullcontext()
        place = direction.place(flat.vector, remembered)
        return nullcontext() if place is flat.vector else flat.moved_to(place)

    def _direction(
        self, gradient: Tensor, settings: RoundSettings, here: Tensor, remembered: Remembered
    ) -> tuple[Tensor, Remembered]:
        """What the optimizer is given, and what is remembered if the candidate is kept."""
        direction = self.method.direction
        if isinstance(direction, Remembering):
            return direction.follow(gradient, settings, here, remembered)
        if type(direction) is Averaged and type(self.method.gate) is Open:  # nobody will look at what was released
            return direction.in_place(gradient, settings), remembered
        return direction.apply(gradient, settings), remembered

    def _bundled(self, charge: Charge, remembered: Remembered) -> AbstractContextManager[None]:
        """Where one event pays for several releases, they are one act."""
        if not charge.covers:
            return nullcontext()
        (event,) = charge.events
        return self.vault.bundle(event, charge.covers, [*self._optimizer_bits(), *map(as_bytes, remembered.values())])

    def _optimizer_bits(self) -> Iterator[bytes | memoryview]:
        """What, beside the gradient and what the direction remembers, decides where a candidate goes."""
        for group in self.optimizer.param_groups:
            yield repr(sorted((name, repr(value)) for name, value in group.items() if name != "params")).encode()
        for state in self.optimizer.state.values():
            for value in state.values():
                yield as_bytes(value) if isinstance(value, Tensor) else repr(value).encode()

    def _whole(self) -> AbstractContextManager[object]:
        """Dropped candidates may leave their gradients behind: a round of several that fails goes back whole."""
        if self.method.gate.candidates == 1:
            return nullcontext()
        return Trial(self.task.flat, self.optimizer, self.scheduler, kept=True)

    def _known_chance(self, number: int) -> AbstractContextManager[None]:
        """Dropout and random transforms draw from torch's generator: make it repeatable for this round only."""
        return torch_seeded(self.randomness.whole(number, "model"))
