"""The call that made a model: all that `fit` was told, so that it can be told of and done again on other examples."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from reticent.accounting import Entry
from reticent.errors import DataError
from reticent.inside import Batch, Loss, readable, refuse_lazy
from reticent.methods.planning import Plan
from reticent.normalised import Normalised
from reticent.origins import MARK
from reticent.results import Learning
from reticent.settling import RULED, Settled

NOT_REPEATED = (
    "model",
    "examples",
    "test",
    "validation",
    "name",
    "classes",
    "progress",
    "shard",
    "folder",
    "resume",
    "check_data",
    "dataset",
    "options",
)
"""What a call says beside how to train: whoever trains as it did is not told it again, and charges nobody."""


@dataclass(frozen=True, eq=False)
class Start:
    """A model before it was trained: its weights, and which run had made them."""

    weights: Mapping[str, Tensor]
    marks: Mapping[str, str]

    @staticmethod
    def of(model: nn.Module) -> Start:
        """How a model is now, on the CPU.

        >>> sorted(Start.of(nn.Linear(1, 1)).weights)
        ['bias', 'weight']
        """
        refuse_lazy(model)
        weights = {name: part.detach().cpu().clone() for name, part in model.state_dict().items()}
        marks = {name: str(vars(part)[MARK]) for name, part in model.named_modules() if MARK in vars(part)}
        return Start(weights, marks)

    def on(self, model: nn.Module) -> nn.Module:
        """A copy of the model, on the CPU, as it was then."""
        begun = copy.deepcopy(model).cpu()
        for name, part in begun.named_modules():
            vars(part).pop(MARK, None)
            if name in self.marks:
                vars(part)[MARK] = self.marks[name]
        begun.load_state_dict(self.weights)
        return begun


@dataclass(frozen=True, eq=False)
class Call:
    """How a model was made. It holds the private examples: it is never stored, and goes with no pickle.

    `asked` is what was asked for, argument by argument.
    """

    asked: Mapping[str, object] = field(repr=False)
    start: Start = field(repr=False)
    plan: Plan
    settled: Settled
    loss: Loss
    """The one that was given, or else chosen."""
    entries: Iterable[Entry] = field(repr=False)
    """The ledger."""
    learning: Learning | None
    seconds: float
    found: dict[str, Mapping[str, object]] = field(default_factory=dict, repr=False)
    """What attack and audit answered, where there is no folder to keep it in."""

    @property
    def model(self) -> nn.Module:
        """The model that was given, without what was put in front of it."""
        model = self.asked["model"]
        assert isinstance(model, nn.Module)
        return model

    @property
    def options(self) -> dict[str, object]:
        """The options of the method."""
        options = self.asked["options"]
        assert isinstance(options, dict)
        return options

    @property
    def settings(self) -> dict[str, object]:
        """How it was trained: what the same call on other examples is given."""
        named = {name: value for name, value in self.asked.items() if name not in NOT_REPEATED}
        numbers = {name: getattr(self.settled.settings, name) for name in RULED}
        return {**named, **numbers, "loss": self.loss, **self.options}

    @property
    def folder(self) -> Path | None:
        """Where the run was kept."""
        folder = self.asked["folder"]
        return Path(folder) if isinstance(folder, str | Path) else None

    @property
    def normalising(self) -> Normalised | None:
        """How the examples were normalised, without them."""
        given = self.asked["examples"]
        return replace(given, examples=()) if isinstance(given, Normalised) else None


def everything(examples: object, model: nn.Module) -> Batch:
    """All examples as one batch, read as those that the model is trained on are.

    >>> everything((np.zeros((2, 3)), np.arange(2)), nn.Linear(3, 1))[1]
    tensor([0, 1])
    """
    given = examples.examples if isinstance(examples, Normalised) else examples
    store = readable(given, model)[0]
    return store.take(np.arange(len(store)))


def pair(examples: object, model: nn.Module) -> tuple[Tensor, Tensor] | None:
    """The inputs and labels of examples that are such pairs; None for any other form.

    >>> [part.shape for part in pair((np.zeros((2, 3)), np.arange(2)), nn.Linear(3, 1))]
    [torch.Size([2, 3]), torch.Size([2])]
    """
    match everything(examples, model):
        case [Tensor() as x, Tensor() as y]:
            return x, y
    return None


def classified(answer: Tensor, labels: Tensor) -> bool:
    """Whether answers are one score for each class, and labels the numbers of classes."""
    return answer.ndim == 2 and answer.shape[1] > 1 and labels.ndim == 1 and not labels.is_floating_point()


def refuse_unreadable(model: nn.Module, **public: object) -> None:
    """Public examples are read before training: what is wrong with them must not come out after it."""
    for name, examples in public.items():
        try:
            if examples is not None:
                readable(examples, model)
        except DataError as error:
            raise DataError(f"{name}: {error}") from error
