"""A loop of the user's own, held to one private step for each batch: shown, heard, and then answered for by the run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor, nn
from torch.optim import Optimizer

from reticent.errors import BudgetSpent, ModelError, PrivacyWarning, ReticentError, SettingError
from reticent.gradients.batches import rows as rows_of
from reticent.gradients.batches import size
from reticent.inside import Batch, Randomness, RoundSettings
from reticent.inside.shown import Recalled, Window
from reticent.integrations.opacus.listening import Note, Turn, Value, part_of_batch, wrapped
from reticent.integrations.opacus.numbers import refuse_measured
from reticent.integrations.opacus.program import REMEDY, Kind, Program
from reticent.methods import Method
from reticent.run import Run

OWN_LOOP = (
    "the loop's own code decides nothing by what it sees of batches and losses: neither the loss, nor the learning "
    "rate, nor which steps are taken, nor when it stops"
)
"""What no engine can check of a loop that somebody else wrote."""


@dataclass(frozen=True, eq=False)
class HeardLoss:
    """The loss that a loop computes, for each example."""

    program: Program

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        """One number for each example."""
        return self.program.for_each(model, batch)


@dataclass(frozen=True, eq=False)
class Terms:
    """What a loop was promised: model, examples, method and how long it may go on."""

    module: nn.Module
    optimizer: Optimizer
    examples: Recalled
    method: Method
    settings: RoundSettings
    rounds: int
    planned: bool
    """Whether the rounds were said beforehand; else they are a limit."""
    reduction: Kind
    criterion: Callable[..., Value] | None
    run: Callable[..., Run]
    """Makes the run, as soon as the loss is known."""


class OwnLoop:
    """What one loop has been shown, and what was heard of it."""

    def __init__(self, terms: Terms, randomness: Randomness):
        self.terms = terms
        self.most: int | None = None
        """How many rows are shown at a time."""
        self.run: Run | None = None
        self._keys = randomness
        self._window = Window(terms.examples, terms.method.sampler, terms.settings, randomness)
        self._program: Program | None = None
        self._turn: Turn | None = None
        self._heard: Program | None = None
        self._stepped = self._last = True

    @property
    def number(self) -> int:
        """How many steps are done."""
        return 0 if self.run is None else self.run.number

    def batches(self) -> Iterator[Batch]:
        """The parts of the next draw, one after the other; the step is taken with the last."""
        if self.number >= self.terms.rounds:
            raise BudgetSpent(
                f"all {self.terms.rounds} planned steps are done: plan more epochs (make_private(..., epochs=...), or "
                "epochs of make_private_with_epsilon)"
            )
        drawn = self._window.show(self.number)
        rows = size(drawn)
        most = max(1, rows if self.most is None else self.most)
        starts = range(0, max(rows, 1), most)
        for start in starts:
            part = rows_of(drawn, start, min(rows, start + most))
            self._last, self._stepped = start == starts[-1], False
            yield self._shown(part)
            if not self._stepped:
                raise SettingError(
                    "a batch was left without optimizer.step(): who is drawn and then not used is not the draw that is "
                    "accounted for. Take a step for every batch; for less memory, use BatchMemoryManager"
                )

    def _shown(self, part: Batch) -> Batch:
        turn = Turn(size(part), self._hear)
        self._turn, self._heard = turn, None
        return wrapped(part, lambda value, path: Note(part_of_batch, path, {}, turn, tuple(value.shape)))

    def _hear(self, note: Note) -> None:
        """A loss was heard: it must be of the batch that was shown last, and only one."""
        if note.turn is not self._turn:
            raise ModelError(
                "the loss is of an earlier batch, whose step is over: each batch has one loss and one step"
            )
        if self._heard is not None:
            raise ModelError(
                "backward() was called twice for one batch: add the losses up and call it once. For less memory, use "
                "BatchMemoryManager; for larger batches, a larger batch_size of the loader"
            )
        try:
            program = Program.of(note)
            if program.kind != self.terms.reduction:
                raise SettingError(
                    f"the loss is a {program.kind} over the batch and loss_reduction is {self.terms.reduction!r}: say "
                    f"make_private(..., loss_reduction={program.kind!r})"
                )
        except ModelError:
            if self.terms.criterion is None:
                raise
            program = Program(())
        if self._program is not None and program != self._program:
            raise ModelError(
                "the loss is made in another way, or with other numbers, than in the first step: what follows from the "
                "batch must be the same function of it in every step. Numbers that change must not depend on the "
                "examples, and there is no way to see that they do not"
            )
        if self._program is None:
            refuse_measured(program, note.turn)
        self._heard = program

    def forget(self) -> None:
        """Gradients were set to zero: the loss that was heard counts no more."""
        self._heard = None

    def step(self) -> bool:
        """One private step for the draw that was shown; False where more of the same draw is still to come."""
        if self._stepped:
            raise SettingError("optimizer.step() needs a batch of the private loader: one step for each")
        if self._heard is None:
            raise SettingError(
                "no loss of this batch was heard: between zero_grad() and step() the loop must call loss.backward() on "
                "a loss of model(x), x being a part of the batch that the private loader gave"
            )
        self._program, self._turn = self._heard, None
        if self._last:
            self._released()
        self._stepped = True
        return self._last

    def _released(self) -> None:
        if self.run is None:
            self.run = self._made()
        if self.run.plan.settings != self.terms.settings:
            raise ReticentError("the run draws by other numbers than the loop was shown: this must not happen")
        self.run.step()

    def _made(self) -> Run:
        program = self._program
        loss = self.terms.criterion if program is None or not program.operations else HeardLoss(program)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", PrivacyWarning
            )  # of a plan that is open: `get_epsilon` tells what was spent
            try:
                return self.terms.run(loss, self._keys, self.most)
            except (IndexError, RuntimeError, TypeError, ValueError) as error:
                raise ModelError(
                    f"the loss cannot be made of other rows as it was of these ({error}): a tensor of as many rows as "
                    f"were drawn (torch.arange(len(x)), torch.zeros(len(x))) or a choice among them is in it. {REMEDY}"
                ) from error
