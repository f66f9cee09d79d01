"""The doctor: a user's own model, loss and examples, looked over for what would make a printed epsilon false.

It looks at the examples, so what it says is as private as they are.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor, nn

from reticent.audits.findings import Finding
from reticent.errors import PrivacyWarning, ReticentError
from reticent.gradients import norms
from reticent.gradients.batches import chosen, map_tensors, size
from reticent.gradients.grouped import Grouped
from reticent.inside import Batch, Loss, Opening, by_person, readable
from reticent.inside.guard import Guard
from reticent.inside.persons import loss_of
from reticent.inside.store import leaves
from reticent.losses import LossLike, per_example
from reticent.methods import dpsgd
from reticent.run import Run

SLACK = 1e-3
"""By this share float32 arithmetic may differ between a row alone and the same row in a batch."""
TAKEN_OUT = 6
"""So many examples are left out, one after the other."""


@dataclass(frozen=True)
class Diagnosis:
    """What was looked for and what was found; private, since it looked at the examples."""

    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing was found."""
        return all(finding.holds for finding in self.findings)

    def to_json(self) -> dict[str, object]:
        """Plain JSON data."""
        return {"healthy": self.healthy, "private": True, "findings": [asdict(one) for one in self.findings]}

    def __str__(self) -> str:
        lines = [f"{'ok ' if one.holds else 'BAD'}  {one.probe}: {one.says}" for one in self.findings]
        verdict = "nothing was found" if self.healthy else "do not release a model trained with these"
        return "\n".join([*lines, f"{verdict}; this looked at your examples: keep it to yourself"])


def doctor(
    model: nn.Module,
    examples: object,
    loss: LossLike = None,
    *,
    groups: object = None,
    rows: int = 24,
    rounds: int = 3,
    seed: int = 0,
) -> Diagnosis:
    """Train briefly on neighbouring datasets with frozen randomness, and compare what was sealed and what came out.

    The model is left as it was. With `groups`, examples are persons with all their rows.

    >>> x, y = torch.randn(40, 3), torch.arange(40) % 2
    >>> doctor(nn.Linear(3, 2), (x, y)).healthy
    True
    >>> def shared(output, target):
    ...     return nn.functional.cross_entropy(output, target, reduction="none") / len(target)
    >>> doctor(nn.Linear(3, 2), (x, y), shared).healthy
    False
    """
    store, made_up, _ = readable(by_person(examples, groups), model)
    rng = np.random.default_rng(seed)
    index = np.sort(rng.choice(len(store), min(rows, len(store)), replace=False))
    asked = loss_of(store, per_example(loss, model, made_up))
    patient = Patient(copy.deepcopy(model), asked, store.take(index), rounds, seed)
    looks: dict[str, Callable[[], Finding]] = {
        "each example alone": patient.alone,
        "whose gradient it is": patient.whose,
        "nothing is kept": patient.kept,
        "one example's influence": patient.influence,
        "nothing goes round the door": patient.round_the_door,
    }
    return Diagnosis(tuple(_tried(name, look) for name, look in looks.items()))


def _tried(name: str, look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except ReticentError as refusal:
        return Finding(name, False, f"a run would refuse it: {refusal}")
    except Exception as error:
        return Finding(name, False, f"the model or the loss failed on some examples ({type(error).__name__})")


@dataclass(frozen=True, eq=False)
class Patient:
    """A copy of the model, its loss, some real rows, and how to look at them."""

    model: nn.Module
    loss: Loss
    batch: Batch
    rounds: int
    seed: int

    def alone(self) -> Finding:
        """The gradient of a row is the same alone, among few and among all, in any order."""
        count, worst = size(self.batch), 0.0
        for row in range(0, count, max(1, count // TAKEN_OUT)):
            by_itself = self._gradient(torch.tensor([row]), 0)
            companies = (torch.arange(count), torch.randperm(count), torch.tensor([row, (row + 1) % count, row]))
            for company in companies:
                place = int((company == row).nonzero()[0])
                worst = max(worst, _apart(by_itself, self._gradient(company, place)))
        says = f"a gradient changes by {worst:.2g} of its length with the company it is in"
        return Finding("each example alone", worst <= SLACK, says, {"largest_change": worst})

    def whose(self) -> Finding:
        """The norms that the engine finds in one pass are those of the rows one by one."""
        count = size(self.batch)
        worst = 0.0
        for order in (torch.arange(count), torch.arange(count).flip(0), torch.randperm(count)):
            rows = chosen(self.batch, order)
            found = norms(self.model, self.loss, rows)
            truth = torch.stack([self._gradient(order[i : i + 1], 0).norm() for i in range(count)])
            worst = max(worst, float(((found - truth).abs() / truth.clamp(min=1e-12)).max()))
        says = f"norms found together differ from those found one by one by at most {worst:.2g}"
        return Finding("whose gradient it is", worst <= SLACK, says, {"largest_difference": worst})

    def kept(self) -> Finding:
        """A pass of real rows leaves no trace in the model."""
        with Guard(self.model, self.loss)(), torch.no_grad():
            self.loss(self.model, self.batch)
        return Finding("nothing is kept", True, "a pass leaves parameters, buffers and attributes as they were")

    def influence(self) -> Finding:
        """Leaving one row out moves the sealed sum by no more than the bound, at several bounds."""
        typical = float(norms(self.model, self.loss, self.batch).median())
        worst, count = 0.0, size(self.batch)
        for bound in (0.1 * typical, typical, 10 * typical):
            if not bound > 0:
                continue
            (with_all,), _ = self._rounds(torch.arange(count), bound, rounds=1)
            for row in range(0, count, max(1, count // TAKEN_OUT)):
                others = torch.tensor([i for i in range(count) if i != row])
                (without,), _ = self._rounds(others, bound, rounds=1)
                worst = max(worst, float((with_all.sealed - without.sealed).norm()) / bound)
        says = f"leaving one example out moves the sum by at most {worst:.4g} of the bound"
        return Finding("one example's influence", worst <= 1 + SLACK, says, {"largest_share": worst})

    def round_the_door(self) -> Finding:
        """With the same releases, training on neighbours ends at the same weights: nothing came by another way."""
        count = size(self.batch)
        first, place = self._rounds(torch.arange(count), 1.0, rounds=self.rounds)
        another = torch.cat(
            [torch.tensor([count - 1]), torch.arange(1, count)]
        )  # as many, so that no public number differs
        _, other = self._rounds(another, 1.0, rounds=self.rounds, replay=first)
        same = torch.equal(place, other)
        says = "the same releases lead to the same weights" if same else "something private reached the weights unpaid"
        return Finding("nothing goes round the door", same, says)

    def _gradient(self, rows: Tensor, place: int) -> Tensor:
        """The gradient of one row's loss in a batch of these rows, as one vector."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            one = self.loss(self.model, chosen(self.batch, rows))[place]
            trained = [p for p in self.model.parameters() if p.requires_grad]
            parts = torch.autograd.grad(one, trained, allow_unused=True, materialize_grads=True)
        return torch.cat([part.reshape(-1) for part in parts])

    def _rounds(
        self, rows: Tensor, bound: float, *, rounds: int, replay: list[Opening] | None = None
    ) -> tuple[list[Opening], Tensor]:
        """Watched rounds of DP-SGD on these rows, everybody drawn: what was sealed, and where the weights went."""
        model, some = copy.deepcopy(self.model), chosen(self.batch, rows)
        plain = isinstance(some, tuple) and not isinstance(some, Grouped)
        trained = [p for p in model.parameters() if p.requires_grad]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            run = Run(
                model,
                torch.optim.SGD(trained, lr=0.1),
                tuple(leaves(some)) if plain else _Rows(some),
                loss=self.loss,
                method=dpsgd(noise_multiplier=1.0, max_grad_norm=bound),
                batch_size=len(rows),
                rounds=rounds,
                delta=1e-5,
                seed=self.seed,
                initial="public",  # a test, of which nothing is promised
            )
        probe = run.watch(replay or ())
        for _ in range(rounds):
            run.step()
        return probe.openings, torch.cat([p.detach().reshape(-1) for p in trained])


class _Rows(torch.utils.data.Dataset[Batch]):
    """Rows of a batch that is no pair, as a dataset."""

    def __init__(self, batch: Batch):
        self._batch = batch

    def __len__(self) -> int:
        return size(self._batch)

    def __getitems__(self, index: list[int]) -> list[Batch]:
        """These rows, one by one."""
        return [self[number] for number in index]

    def __getitem__(self, number: int) -> Batch:
        """One row, without its first axis."""
        return map_tensors(self._batch, lambda part: part[number])


def _apart(one: Tensor, two: Tensor) -> float:
    """How far two gradients are from each other, as a share of the longer."""
    length = max(float(one.norm()), float(two.norm()))
    return float((one - two).norm()) / length if length > 0 else 0.0
