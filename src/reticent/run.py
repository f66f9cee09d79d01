"""A run: planned before its first round, it stops before its budget is passed and resumes after a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from reticent.accounting import Budget, Event, Guarantee, Ledger
from reticent.accounting.lineage import Lineage
from reticent.bill import make_bill
from reticent.budgets import DatasetBudget
from reticent.checkpoint import Folder
from reticent.describing import described_run
from reticent.errors import BudgetSpent, ResumeError, SettingError
from reticent.inside import Batch, Flat, Opening, Probe, Randomness, RoundSettings, Task, readable
from reticent.inside.diagnostics import Diagnostics
from reticent.inside.on_device import generator
from reticent.inside.persons import by_person, loss_of, rows_in_words, unit_of
from reticent.inside.several import here, refuse_several
from reticent.inside.sharding import cut_up, unwrapped
from reticent.inside.shares import Shares, sharded
from reticent.inside.views import Views, viewable
from reticent.keeping import Parts
from reticent.loop import Loop
from reticent.losses import LossLike, per_example
from reticent.methods import Method, get
from reticent.opening import opened
from reticent.optimizers import together
from reticent.origins import Initial, mark
from reticent.outside import TailAverage
from reticent.resuming import refuse_other_examples, rounds_begun
from reticent.standing import Standing
from reticent.standing import Step as Step
from reticent.usable import for_the_first, promises_of, refuse_on_ranks, refuse_unusable, warn_of_weak_promise


class Run:
    """A private training run: iterate over it, and each turn is one round.

    The number of rounds, and with it the guarantee, is fixed before the first one. Of a list of optimizers each has its
    part of the parameters, and a release moves all. With a `folder` the run writes its ledger and checkpoints there,
    and `resume=True` goes on exactly where a crash stopped it. `average_last` is the share of the planned rounds, the
    last, that is averaged (not if a filter ends the run early); `already` lists what was released of the same examples
    before and is part of the guarantee. `size` declares the number of examples: all public numbers follow from it, and
    the guarantee is for adding or removing one; otherwise their number is public. `groups` says whose each row is: then
    an example is a person, of whose rows at most `most_rows` take part in a round. `loss` and `views` are those of
    `fit`, `probes` public rows to check the model with, where made-up ones will not do. On several processes (torchrun)
    each holds all examples, or `shard` says which. `initial` says whose the starting weights are: "public", or another
    run's, and then budget and guarantee are for both. `dataset` is charged for the plan before anything is released.

    >>> import torch, reticent as rt
    >>> net, x, y = nn.Linear(2, 2), torch.randn(100, 2), torch.zeros(100, dtype=torch.long)
    >>> run = Run(net, torch.optim.SGD(net.parameters(), lr=0.1), (x, y), method=rt.methods.dpsgd(noise_multiplier=2.0),
    ...           batch_size=10, rounds=3, seed=0)
    >>> [step.number for step in run]
    [1, 2, 3]
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer | Sequence[Optimizer],
        examples: Any,
        *,
        method: str | Method,
        batch_size: float,
        size: int | None = None,
        adjacency: str | None = None,
        groups: Any = None,
        most_rows: int | None = None,
        views: str | Views | None = None,
        shard: range | None = None,
        loss: LossLike = None,
        rounds: int | None = None,
        epochs: float | None = None,
        budget: Budget | None = None,
        delta: float | None = None,
        already: Iterable[Event] = (),
        initial: Initial = None,
        dataset: DatasetBudget | None = None,
        scheduler: LRScheduler | None = None,
        seed: int | Randomness | None = None,
        average_last: float = 0.0,
        max_physical_batch_size: int | None = None,
        probes: Batch | None = None,
        folder: str | Path | None = None,
        resume: bool = False,
        checkpoint_seconds: float = 30.0,
        private_diagnostics: bool = False,
    ):
        self._ranks, model, optimizer = here(), unwrapped(model), together(optimizer)
        method = get(method) if isinstance(method, str) else method
        own, made_up, probes = readable(by_person(examples, groups, most_rows), model, probes)
        seen = viewable(views, made_up)
        found, shares = sharded(own, shard, self._ranks, divided=not cut_up(model))
        refuse_on_ranks(self._ranks, shares, method, diagnostics=private_diagnostics)
        bill = make_bill(
            method,
            counted=len(found),
            size=size,
            adjacency=adjacency,
            batch_size=batch_size,
            rounds=rounds,
            epochs=epochs,
            budget=budget,
            delta=delta,
            already=tuple(already),
            initial=initial,
            unit=unit_of(found),
            assumes=tuple(getattr(examples, "assumes", ())),
        )
        self.plan = bill.plan
        warn_of_weak_promise(self.plan.price, self.plan.settings.size, self._ranks)
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler
        self._standing, self._divided = Standing(self.plan.settings), shares
        self._average = TailAverage(average_last, self.plan.rounds)
        self._parts = Parts(model, optimizer, scheduler, self._average)
        self._diagnostics, self._watched = Diagnostics() if private_diagnostics else None, False
        self.tellers: list[Callable[[Run, Step], None]] = []
        self.loss = per_example(loss, model, made_up, probes)
        rows = loss_of(found, self.loss, seen)
        self._task = Task(model, rows, Flat(model), max_physical_batch_size, self._diagnostics, seen)
        refuse_unusable(optimizer, scheduler, self._task, self.plan, average_last)
        folder, dataset = for_the_first(folder, dataset, self._ranks)
        with self._ranks.together():
            self._folder = Folder(Path(folder), resume=resume, seconds=checkpoint_seconds) if folder else None
            self.bill = bill.reserving(dataset, folder, seeded=getattr(seed, "seeded", seed is not None))
        self.bill = replace(self.bill, run=self._ranks.share(lambda: self.bill.run))
        self._description = described_run(
            method,
            self.plan,
            self.loss,
            optimizer,
            scheduler,
            seed=seed if isinstance(seed, int) else None,
            generator=generator(self._task.flat.vector.device),
            parameters=self._task.flat.shapes(),
            average_last=self._average.share,
            diagnostics=private_diagnostics,
            **(self.bill.described() | rows_in_words(found, seen)),
        )
        held = opened(found, shares, self._ranks, self._task, self.bill, self._description, self._folder, seed, probes)
        self._vault, self._randomness, self._held = held.vault, held.keys, replace(held, stored=None)
        self._loop = Loop(self.plan.method, held.vault, self._task, optimizer, scheduler, held.keys, held.checked)
        with self._ranks.together():
            if held.stored is not None:
                self._restore(held.stored)
            else:
                self.bill = self.bill.meeting(model)
        self._ranks.share(lambda: self._begin(resumed=held.stored is not None))

    def _begin(self, *, resumed: bool) -> None:
        with nullcontext() if self.over else self.bill.charged(resumed=resumed):
            if not resumed:
                self.save()  # the key must be on disk before anything is released with it

    def __iter__(self) -> Iterator[Step]:
        while not self.over:
            try:
                step = self.step()
            except BudgetSpent:
                if not self.plan.adaptive or self.number == 0:
                    raise  # a run that does nothing must not look like one that is done
                self._standing = replace(self._standing, ended=True)  # the filter lets nothing more out
                self.save()
                return
            yield step

    def __len__(self) -> int:
        return self.plan.rounds

    @property
    def number(self) -> int:
        """How many rounds are done."""
        return self._standing.number

    @property
    def kept(self) -> int:
        """How many of them were kept."""
        return self._standing.kept

    @property
    def settings(self) -> RoundSettings:
        """The public numbers of the next round, before the control turns them."""
        return self._standing.settings

    @property
    def over(self) -> bool:
        """Whether nothing more will be released: all rounds are done, or the filter of an adaptive plan is full."""
        return self._standing.ended or self.number >= self.plan.rounds

    def begin(self) -> None:
        """Write into the model that this run trains it, and at what cost, before anything of the examples is in it."""
        if self.number == 0:
            self.bill = self.bill.meeting(self.model)  # another may have begun since
            mark(self.model, self.lineage, everything=bool(self.plan.already))

    def step(self) -> Step:
        """One round; raises BudgetSpent after the last one that was planned."""
        if self.over:
            raise BudgetSpent(f"the run is over after {self.number} rounds: a longer one must be planned as one")
        before = self._standing
        if self._folder is not None:
            self._folder.refuse_if_lost()
        if self._vault.shares(before.number) != self._divided:
            self.save()  # a round is repeated as it was divided, which the checkpoint says
        self.begin()
        try:
            self._standing = self._loop.round(before)
        except ResumeError:
            raise  # nothing that was changed since may take the place of what the round was begun with
        except BaseException:
            self.save()  # the trial has rolled the round back; a replay gives the same values, charged once
            raise
        self._average.take(self.number, self._task.flat.vector)
        step = Step(self.number, kept=self.kept > before.kept)
        for tell in self.tellers:  # before the checkpoint, since a round that it knows of is not run again
            tell(self, step)
        if self._folder is not None and (self._folder.due() or self.number == self.plan.rounds):
            self.save(behind=not self.over)
        return step

    def guarantee(self) -> Guarantee:
        """What is proved for this run: that of the planned number of rounds, also if it is left earlier."""
        if self._watched:
            raise SettingError("this run was watched by a probe, which saw its examples: it states no guarantee")
        claim = self.plan.claim(self.kept)
        coins = generator(self._task.flat.vector.device)
        promised = self.bill.guarantee(seeded=self._randomness.seeded, generator=coins)
        beside = () if self._diagnostics is None else ("the private diagnostics recorded beside the run",)
        said = promised.assumptions + promises_of(self.optimizer, self.plan) + self._held.assumes
        promised = replace(promised, excludes=promised.excludes + beside, assumptions=said)
        return replace(promised, as_claimed=None if claim is None else claim.to_json())

    def spent(self) -> float:
        """The live figure: epsilon if exactly this many rounds had been planned. Not a guarantee; see `guarantee`."""
        return self.bill.spent(self.number)

    @property
    def lineage(self) -> Lineage:
        """Every run that made its weights, this one included, and what each may have cost these examples."""
        return self.bill.lineage

    @property
    def ledger(self) -> Ledger:
        """Every release so far."""
        return self._vault.ledger

    def private_diagnostics(self) -> list[dict[str, object]]:
        """Numbers about the examples, for research; not covered by the guarantee, never to be shown with the model."""
        if self._diagnostics is None:
            raise SettingError("private diagnostics were not recorded: make the run with private_diagnostics=True")
        return self._diagnostics.records()

    def watch(self, replay: Sequence[Opening] = ()) -> Probe:
        """For audits: a probe of all that passes the door (or of what another run released); no guarantee then."""
        if self._folder is not None or self.bill.reservation is not None:
            raise SettingError("a watched run is a test and must not be stored: make it without a folder or a dataset")
        refuse_several("watching a run")
        self._watched = True
        return self._vault.watch(replay)

    def save(self, *, behind: bool = False) -> None:
        """Write a checkpoint (`behind`: while the run goes on); with the secret key until the run is over."""
        self._divided = self._vault.shares(self.number)
        if self._folder is None:
            return
        secret = {"randomness": self._randomness.state(), "examples": self._held.examples, "memory": self._vault.memory}
        tree = {
            "settings": self._description,
            **self.bill.to_tree(),
            **self._standing.to_tree(over=self.over),
            **({} if self.over else secret),
            "ledger": self._vault.ledger.mark().to_json(),
            "shares": self._divided.to_tree(),
            "assumes": list(self._held.assumes),
            **self._parts.to_tree(),
        }
        self._folder.write(tree, behind=behind)
        if self.over:
            self._folder.release()

    def _restore(self, tree: dict[str, Any]) -> None:
        self._standing = self._standing.restored(tree)  # type: ignore[arg-type]
        if not self.over:
            refuse_other_examples(tree, self._held.examples)
            self._divided = Shares.from_tree(tree.get("shares", [1]))
            self._vault.repeats(self._divided, rounds_begun(self.ledger, tree))
        self._vault.memory.update(tree.get("memory", {}))
        self._held = replace(self._held, assumes=tuple(sorted({*self._held.assumes, *tree.get("assumes", ())})))
        self.bill = self.bill.resumed(tree)
        self._parts.restore(tree)
        mark(self.model, self.lineage, everything=bool(self.plan.already))
