"""What comes of training: a plain model with its guarantee, what it answers, and the folder it is kept in."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save
from torch import Tensor, nn

from reticent.accounting import Guarantee
from reticent.checkpoint import replace_file, unwritable
from reticent.errors import ResumeError
from reticent.evaluating import evaluate, predict
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

    def predict(self, x: Any, *, batch_size: int = 1024) -> Tensor:
        """The model's answers for `x`, in evaluation mode: logits, or whatever it was trained to give."""
        return predict(self.model, x, batch_size=batch_size)

    def evaluate(self, x: Any, y: Any = None, *, task: str | None = None) -> dict[str, Any]:
        """Metrics such as `["accuracy"]`, `["auc"]` or `["r2"]`, beside those of the majority or the mean.

        Say on which examples when you quote them: on those that the model was trained on they are private.
        """
        known = self.about.get("loss", {})
        return evaluate(self.model, x, y, task=task or known.get("task"), outputs=known.get("answers"))

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
