"""What comes of training: a plain model with its guarantee, what it answers, and the folder it is kept in."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from reticent.accounting import Guarantee
from reticent.checkpoint import replace_file, unwritable
from reticent.data import Preprocessing
from reticent.data.arrays import as_array
from reticent.data.features.extractors import features_of
from reticent.data.loading.npz import ArraySchema
from reticent.data.loading.opening import STORED, read_stored
from reticent.data.preprocessing import names_of
from reticent.data.tables.frames import DataFrame
from reticent.errors import DataError, ResumeError
from reticent.models import Blueprint
from reticent.normalised import in_front
from reticent.results import read_guarantee
from reticent.results.fields import Fields, read_json


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, still the user's own module, and what is proved about it."""

    model: nn.Module
    guarantee: Guarantee
    rounds: int
    kept: int
    about: dict[str, Any] = field(default_factory=dict)
    preprocessing: Preprocessing | None = None
    """How the examples were read from files or data frames, kept so that new ones are read alike."""

    @overload
    def predict(self, x: str | Path | DataFrame, *, batch_size: int = 1024) -> list[str]: ...
    @overload
    def predict(self, x: Any, *, batch_size: int = 1024) -> Tensor: ...
    def predict(self, x: Any, *, batch_size: int = 1024) -> Tensor | list[str]:
        """The model's answers for `x`, in evaluation mode; for a file or a data frame, the names of the classes."""
        if self.preprocessing is None or not self.preprocessing.accepts(x):
            return predict(self.model, as_array(x, like=self.model), batch_size=batch_size)
        return names_of(self.preprocessing.classes, predict(self.model, self.inputs(x), batch_size=batch_size))

    def inputs(self, source: Any) -> Tensor:
        """What the model is given for a file or a data frame, read as the training examples were."""
        if self.preprocessing is None:
            raise DataError(
                "this model does not know how its examples were read: give the inputs themselves, or train it with "
                "examples read by a schema (data.table)"
            )
        x, features = self.preprocessing.apply(source), self.about.get("network", {}).get("features")
        return x if features is None else features_of(x, str(features))

    def evaluate(self, x: Any, y: Any) -> float:
        """The share of right answers; say on which examples when you quote it."""
        return accuracy(self.model, x, y)

    def save(self, folder: str | Path) -> None:
        """Write weights and guarantee into a folder; the weights load in plain PyTorch."""
        path = Path(folder)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(path, error) from error
        weights = {name: part.detach().cpu().contiguous().clone() for name, part in self.model.state_dict().items()}
        replace_file(path / "model.safetensors", save(weights))
        card = {"guarantee": self.guarantee.to_json(), "rounds": self.rounds, "kept": self.kept, "about": self.about}
        if self.preprocessing is not None:
            replace_file(path / STORED, json.dumps(self.preprocessing.to_json(), indent=2).encode())
        replace_file(path / "card.json", json.dumps(card, indent=2).encode())


def load(folder: str | Path, model: nn.Module | None = None) -> Trained:
    """Read back what `Trained.save` wrote, into a module of the same shape; one of ours is built as it was."""
    path = Path(folder)
    if not (path / "card.json").exists():
        raise ResumeError(f"{path} holds no trained model: card.json is not there")
    card = Fields(read_json(path / "card.json"), str(path / "card.json"))
    guarantee, about = read_guarantee(card.need_part("guarantee")), card.need_part("about")
    model = _network(about, model, path)
    try:
        model.load_state_dict(load_file(path / "model.safetensors"))
    except RuntimeError as error:
        raise ResumeError(f"the weights in {path} belong to another model: {error}") from error
    return Trained(
        model, guarantee, card.need("rounds", int), card.need("kept", int), dict(about.data), _reading(about, path)
    )


def _reading(about: Fields, path: Path) -> Preprocessing | None:
    """How the examples were read; those of our own datasets are arrays with numbered classes."""
    network = about.part("network")
    return read_stored(path) or (None if network is None else ArraySchema.numbered(network.need("classes", int)))


def _network(about: Fields, model: nn.Module | None, path: Path) -> nn.Module:
    """The module that the weights belong to, with what was put in front of it."""
    network = about.part("network")
    if model is None and network is None:
        raise ResumeError(f"{path} does not say how to build its model: give the module, rt.load(folder, model)")
    if model is None:
        assert network is not None
        return Blueprint.from_json(network.data).build()
    shape = about.data.get("normalised")
    return in_front(model, tuple(shape)) if isinstance(shape, list) else model


def predict(model: nn.Module, x: Any, *, batch_size: int = 1024) -> Tensor:
    """A model's answers for `x`, in evaluation mode, `batch_size` at a time."""
    was_training = model.training
    device = next(model.parameters()).device
    model.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(part.to(device)).cpu() for part in torch.split(torch.as_tensor(x), batch_size)])
    finally:
        model.train(was_training)


def accuracy(model: nn.Module, x: Any, y: Any) -> float:
    """The share of right answers of a classifier."""
    return float((predict(model, x).argmax(1) == torch.as_tensor(y)).double().mean())
