"""What a forward pass may write: what is the same whatever the examples are, and what it takes back."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

import reticent as rt
from reticent.errors import ModelError
from reticent.gradients.general import by_vmap
from reticent.gradients.randomness import undisturbed
from reticent.gradients.task import LossTask

Pair = tuple[Tensor, Tensor]


def trained(model: nn.Module, examples: Pair, rounds: int = 3) -> None:
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    sgd = torch.optim.SGD(parameters, lr=0.1)
    method = rt.methods.dpsgd(noise_multiplier=1.0)
    run = rt.Run(model, sgd, examples, method=method, batch_size=50, rounds=rounds, delta=1e-5, seed=0)
    assert len(list(run)) == rounds


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)


class MadeOnce(Base):
    """Tables made in the first pass, one kept by length, and one by a function that remembers."""

    def __init__(self) -> None:
        super().__init__()
        self.places: Tensor | None = None
        self.masks: dict[int, Tensor] = {}

    @staticmethod
    @functools.lru_cache
    def scale(length: int) -> Tensor:
        return torch.ones(length)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        if self.places is None:
            self.places = torch.arange(length) / length
        mask = self.masks.setdefault(length, torch.ones(length))
        return self.layer((x + self.places) * mask * self.scale(length))


class MadeAnew(Base):
    """The same numbers in every pass: a length beyond the small ones that Python shares, a shape, a mask, a bias."""

    def forward(self, x: Tensor) -> Tensor:
        self.length, self.shape, self.name = 1000 * x.shape[1], list(x.shape[1:]), "x" * x.shape[1]
        self.mask, self.ratio = torch.ones(4), {"a": (1 / x.shape[1], None)}
        return self.layer(x * self.mask)


class TakenBack(Base):
    """Handed from one part to the next on the module, and taken away again."""

    def forward(self, x: Tensor) -> Tensor:
        self.hidden, self.seen = x, {3.5}
        out: Tensor = self.layer(self.hidden)
        del self.hidden, self.seen
        return out


@dataclass
class Config:
    """As in a library of language models: filled in when the first labels come."""

    classes: int = 2
    problem: str | None = None


class Answer(OrderedDict[str, Tensor]):
    """A dict with attributes."""

    @property
    def logits(self) -> Tensor:
        return self["logits"]


class LanguageModel(nn.Module):
    """Words, places that are kept as a buffer, rotations that are cached by length, tied weights, a settings object."""

    warned: ClassVar[dict[str, bool]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.config = Config()
        self.words, self.out = nn.Embedding(8, 8), nn.Linear(8, 8, bias=False)
        self.out.weight = self.words.weight
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 2)
        self.register_buffer("rows", torch.arange(16).expand(1, -1), persistent=False)
        self.cached, self.sines = 0, torch.zeros(0)

    def forward(self, x: Tensor) -> Answer:
        tokens = x.abs().long() % 8
        length = tokens.shape[1]
        if self.config.problem is None:
            self.config.problem = "one label"
        if length > self.cached:
            self.cached, self.sines = length, torch.sin(self.rows[0, :length, None] * torch.ones(8))
        if not self.warned.get("sdpa"):
            self.warned["sdpa"] = True
        h = self.words(tokens) + self.sines[:length]
        h = self.norm(h + self.attend(h, h, h, need_weights=False)[0])
        return Answer(logits=self.head(self.out(h).mean(1)))


class Logits(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.model(x).logits
        return logits


class Steady(nn.Sequential):
    """Its spectral norm stays as it is."""

    def train(self, mode: bool = True) -> Steady:
        super().train(mode)
        self[0].parametrizations.weight[0].eval()
        return self


ALLOWED: dict[str, Callable[[], nn.Module]] = {
    "made once": MadeOnce,
    "made anew": MadeAnew,
    "taken back": TakenBack,
    "language model": lambda: Logits(LanguageModel()),
    "weight norm": lambda: nn.Sequential(parametrizations.weight_norm(nn.Linear(4, 4)), nn.Linear(4, 2)),
    "orthogonal": lambda: nn.Sequential(parametrizations.orthogonal(nn.Linear(4, 4)), nn.Linear(4, 2)),
    "spectral norm": lambda: Steady(parametrizations.spectral_norm(nn.Linear(4, 4)), nn.Linear(4, 2)).train(),
    "dropout": lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 2)),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_does_not_depend_on_the_examples_is_let_be(name: str, blobs: Pair) -> None:
    trained(ALLOWED[name](), blobs)


@pytest.mark.slow
def test_a_compiled_model_is_let_be(blobs: Pair) -> None:
    trained(torch.compile(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), backend="eager"), blobs)


def test_what_depends_on_the_number_of_examples_is_refused(blobs: Pair) -> None:
    class ByNumber(Base):
        def __init__(self) -> None:
            super().__init__()
            self.masks: dict[int, Tensor] = {}

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x * self.masks.setdefault(len(x), torch.ones(len(x), 4)))

    with pytest.raises(ModelError, match=r"'masks'.* nor on their number: make it in __init__"):
        trained(ByNumber(), blobs)


def test_memory_given_to_a_buffer_under_vmap_is_refused_and_ends_nothing(blobs: Pair) -> None:
    """A tensor of `vmap` in a buffer's place would end the process: the examples are taken one by one instead."""

    class GivesMemory(Base):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("largest", torch.zeros(4))

        def forward(self, x: Tensor) -> Tensor:
            if len(x) == 1:  # one by one, and under vmap
                self.largest.data = x[:, 0].detach()
            return self.layer(x.sort(0).values if len(x) > 1 else x)

    def alone(model: nn.Module, batch: Pair) -> Tensor:
        """A loss that no rule follows, so that every example is taken by itself."""
        rows = [model(batch[0][row : row + 1]) for row in range(len(batch[0]))]
        return nn.functional.cross_entropy(torch.cat(rows), batch[1], reduction="none")

    model = GivesMemory()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    method = rt.methods.dpsgd(noise_multiplier=1.0)
    with pytest.raises(ModelError, match=r"\(GivesMemory\) keeps something .*'largest'"):
        rt.Run(model, sgd, blobs, loss=alone, method=method, batch_size=50, rounds=3, delta=1e-5, seed=0)
    assert model.largest.tolist() == [0.0] * 4


def test_vmap_refuses_to_give_a_buffer_memory() -> None:
    """The tensor of a batch would stay in the buffer, and end the process when it is next looked at."""

    class GivesMemory(Base):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("largest", torch.zeros(4))

        def forward(self, x: Tensor) -> Tensor:
            self.largest.data = x[:, 0].detach()
            return self.layer(x)

    task = LossTask.of(GivesMemory(), lambda model, x: model(x).sum(1))
    with undisturbed(task.model), pytest.raises(RuntimeError, match="`vmap` cannot follow"):
        by_vmap(task, torch.randn(3, 4))
    assert task.model.largest.tolist() == [0.0] * 4
