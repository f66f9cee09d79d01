"""Fit in one call, and what comes of it: a plain model with its guarantee."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from reticent.accounting import Budget, Guarantee
from reticent.accounting.adjacency import adjacency_of
from reticent.checkpoint import replace_file, unwritable
from reticent.errors import DataError, ResumeError, SettingError, UnknownName
from reticent.inside import Loss, Tabular, as_store
from reticent.losses import cross_entropy
from reticent.methods import Method, get
from reticent.methods.planning import default_delta
from reticent.results import read_guarantee
from reticent.results.fields import Fields, read_json
from reticent.run import Run, Step


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, still the user's own module, and what is proved about it."""

    model: nn.Module
    guarantee: Guarantee
    rounds: int
    kept: int
    about: dict[str, Any] = field(default_factory=dict)

    def predict(self, x: Any, *, batch_size: int = 1024) -> Tensor:
        """The model's answers for `x`, in evaluation mode."""
        return predict(self.model, x, batch_size=batch_size)

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
        replace_file(path / "card.json", json.dumps(card, indent=2).encode())


def load(folder: str | Path, model: nn.Module) -> Trained:
    """Read back what `Trained.save` wrote, into a module of the same shape."""
    path = Path(folder)
    if not (path / "card.json").exists():
        raise ResumeError(f"{path} holds no trained model: card.json is not there")
    card = Fields(read_json(path / "card.json"), str(path / "card.json"))
    guarantee, about = read_guarantee(card.need_part("guarantee")), card.need_part("about")
    try:
        model.load_state_dict(load_file(path / "model.safetensors"))
    except RuntimeError as error:
        raise ResumeError(f"the weights in {path} belong to another model: {error}") from error
    return Trained(model, guarantee, card.need("rounds", int), card.need("kept", int), dict(about.data))


def fit(
    model: nn.Module,
    examples: Any,
    *,
    method: str | Method = "dpsgd",
    epsilon: float | None = None,
    delta: float | None = None,
    epochs: float = 20,
    batch_size: float | None = None,
    size: int | None = None,
    adjacency: str | None = None,
    lr: float | None = None,
    momentum: float = 0.9,
    loss: Loss = cross_entropy,
    optimizer: Callable[[Any], Optimizer] | None = None,
    scheduler: Callable[[Optimizer], LRScheduler] | None = None,
    seed: int | None = None,
    progress: Callable[[Run, Step], None] | None = None,
    max_physical_batch_size: int | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    check_data: bool = False,
    **options: Any,
) -> Trained:
    """Train a model privately in one call: with `epsilon`, the noise is the least that keeps to it.

    `size` declares the number of examples, and the guarantee is for adding or removing one; otherwise it is for taking
    one's contribution away, and the number is public. `adjacency="replace"`: for exchanging one for another.

    An example that cannot be evaluated, such as one with a label that the model does not know, counts for nothing.
    `check_data=True` looks for such labels before training and names them: what it says is private.

    >>> x, y = torch.randn(500, 4), torch.randint(0, 2, (500,))
    >>> trained = fit(nn.Linear(4, 2), (x, y), epsilon=2.0, epochs=1, seed=0)
    >>> trained.guarantee.status, trained.guarantee.epsilon <= 2.0
    ('proved', True)
    """
    chosen = get(method, **options) if isinstance(method, str) else _without_options(method, options)
    relation = adjacency_of(size, adjacency)
    public = len(as_store(examples)) if size is None else size
    if check_data:
        _check_labels(model, examples, loss)
    budget = Budget(epsilon, default_delta(public) if delta is None else delta) if epsilon is not None else None
    made = (
        optimizer(model.parameters())
        if optimizer is not None
        else make_optimizer(chosen.optimizer, model, lr, momentum)
    )
    run = Run(
        model,
        made,
        examples,
        method=chosen,
        batch_size=batch_size if batch_size is not None else default_batch_size(public),
        size=size,
        adjacency=relation,
        loss=loss,
        epochs=epochs,
        budget=budget,
        delta=delta,
        scheduler=scheduler(made) if scheduler is not None else None,
        seed=seed,
        max_physical_batch_size=max_physical_batch_size,
        folder=folder,
        resume=resume,
    )
    for step in run:
        if progress is not None:
            progress(run, step)
    return Trained(model, run.guarantee(), run.number, run.kept)


def default_batch_size(size: int) -> int:
    """A thirtieth of the examples, but at least 64 where there are as many: large batches suit private training.

    >>> default_batch_size(60_000), default_batch_size(1_000), default_batch_size(10)
    (2000, 64, 10)
    """
    return min(size, max(64, size // 30))


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


def make_optimizer(name: str, model: nn.Module, lr: float | None, momentum: float | None) -> Optimizer:
    """The optimizer a method asks for, on the trainable parameters."""
    trainable = [p for p in model.parameters() if p.requires_grad]
    match name:
        case "sgd":
            return SGD(trainable, lr=0.5 if lr is None else lr, momentum=momentum or 0.0)
        case "adam":
            return Adam(trainable, lr=0.01 if lr is None else lr)
    raise UnknownName("optimizer", name, ["adam", "sgd"])


def make_scheduler(name: str | None, optimizer: Optimizer, rounds: int) -> LRScheduler | None:
    """A learning rate that falls to 0 over so many kept updates: "linear" or "cosine"; None keeps it as it is."""
    shapes: dict[str, Callable[[float], float]] = {
        "linear": lambda done: 1 - done,
        "cosine": lambda done: (1 + math.cos(math.pi * done)) / 2,
    }
    if name is None or name == "constant":
        return None
    if name not in shapes:
        raise UnknownName("lr_schedule", name, [*shapes, "constant"])
    shape = shapes[name]
    return LambdaLR(optimizer, lambda step: shape(min(step / rounds, 1.0)))


def _without_options(method: Method, options: dict[str, Any]) -> Method:
    if options:
        raise SettingError(f"options {sorted(options)} go with a method's name; a Method carries its own")
    return method


def _check_labels(model: nn.Module, examples: Any, loss: Loss) -> None:
    """Labels outside what the model can answer would only fail in the middle of the run."""
    pair = tuple(examples.as_columns()) if isinstance(examples, Tabular) else examples
    if loss is not cross_entropy or not isinstance(pair, tuple | list) or len(pair) != 2 or len(pair[0]) == 0:
        return
    first = pair[0][:1]
    x, y = first if isinstance(first, Tensor) else torch.as_tensor(np.asarray(first)), torch.as_tensor(pair[1])
    classes = predict(model, x).shape[-1]
    low, high = int(y.min()), int(y.max())
    if y.dtype.is_floating_point or low < 0 or high >= classes:
        raise DataError(
            f"labels must be whole numbers from 0 to {classes - 1}, as many as the model has outputs; "
            f"found {y.dtype} from {low} to {high}. Renumber the labels, or give the model {high + 1} outputs."
        )
