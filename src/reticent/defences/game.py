"""The game between a classifier and an adversary who recognises its members (Nasr et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, logsigmoid
from torch.optim import Adam

from reticent.data import Examples
from reticent.defences.chains import small_steps
from reticent.defences.defended import probabilities
from reticent.defences.inference import InferenceModel, gain
from reticent.defences.plain import Plain, Tell, batches, device_of, seeds, step


@dataclass(frozen=True, eq=False)
class AdversarialGame:
    """min over the classifier f of its loss + penalty * max over the adversary h of h's gain.

    >>> game = AdversarialGame(nn.Linear(2, 3), InferenceModel(3), penalty=1.0)
    >>> game.classifier_loss(Examples(torch.zeros(4, 2), torch.zeros(4, dtype=torch.long))).shape
    torch.Size([])
    """

    model: nn.Module
    inference: InferenceModel
    penalty: float
    inference_steps: int = 1
    inference_lr: float = 1e-3

    def play(self, members: Examples, others: Examples, plain: Plain, *, rounds: int, seed: int, tell: Tell) -> None:
        """In each round the adversary takes `inference_steps` steps on fresh batches, then the classifier takes one."""
        optimizer = plain.optimizer(self.model.parameters())
        rival = Adam(self.inference.parameters(), lr=self.inference_lr)
        shown, compared = seeds(seed, 2)
        shown_rows = batches(torch.arange(len(members)), plain.batch_size, shown)
        other_rows = batches(torch.arange(len(others)), plain.batch_size, compared)
        train_rows = batches(torch.arange(len(members)), plain.batch_size, seed)
        self.model.train()
        with small_steps([self.model, *self.inference.children()], plain.batch_size):
            for _ in range(rounds):
                for _ in range(self.inference_steps):
                    step(rival, self.adversary_loss(members.take(next(shown_rows)), others.take(next(other_rows))))
                step(optimizer, self.classifier_loss(members.take(next(train_rows))))
                tell(1)

    def adversary_loss(self, members: Examples, others: Examples) -> Tensor:
        """Minus the adversary's gain on what the model shows an attacker: its answers in evaluation mode."""
        ours, theirs = (self._guesses(batch.y, probabilities(self.model, batch.x)) for batch in (members, others))
        return -gain(ours, theirs)

    def classifier_loss(self, members: Examples) -> Tensor:
        """Cross-entropy + penalty * mean log h: the members' part of the gain, the only one the classifier may lower.

        The gain's other part is of examples that are not trained on, and stays out of the classifier's gradient; the
        factor 1/2 is taken into the penalty.
        """
        logits = self.model(members.x.to(device_of(self.model)))
        recognised = logsigmoid(self._guesses(members.y, logits.softmax(1))).mean()
        return cross_entropy(logits, members.y.to(logits.device)) + self.penalty * recognised

    def _guesses(self, y: Tensor, predictions: Tensor) -> Tensor:
        device = device_of(self.inference)
        guesses: Tensor = self.inference(predictions.to(device), y.to(device))
        return guesses
