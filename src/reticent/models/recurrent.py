"""The recurrent network of DPSUR Table 7 and DPIS for film reviews."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from reticent.models.activations import activation as named

VOCABULARY = 20_000
_EMBEDDING, _HIDDEN = 100, 32


class ReviewRnn(nn.Module):
    """Embed, project, read in both directions, average over all positions (padding too), classify.

    `vectors` (one row a word, say GloVe) are public and stay frozen; without them the embedding is trained.
    `single_bias` gives the LSTM one bias vector a gate as Keras has: the second is held at zero.

    >>> sum(p.numel() for p in ReviewRnn().parameters())
    2021202
    """

    def __init__(
        self, classes: int = 2, activation: str = "tanh", *, vectors: Tensor | None = None, single_bias: bool = False
    ):
        super().__init__()
        if vectors is None:
            self.embedding = nn.Embedding(VOCABULARY, _EMBEDDING)
        else:
            self.embedding = nn.Embedding(len(vectors), vectors.shape[1], _weight=vectors.float())
            self.embedding.requires_grad_(False)
        self.project = nn.Sequential(nn.Linear(self.embedding.embedding_dim, _HIDDEN), named(activation))
        self.lstm = nn.LSTM(_HIDDEN, _HIDDEN, batch_first=True, bidirectional=True)
        self.classify = nn.Sequential(nn.Linear(2 * _HIDDEN, 16), named(activation), nn.Linear(16, classes))
        if single_bias:
            self._hold_second_bias()

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.lstm(self.project(self.embedding(ids)))
        logits: Tensor = self.classify(states.mean(dim=1))
        return logits

    def _hold_second_bias(self) -> None:
        for name, parameter in self.lstm.named_parameters():
            if name.startswith("bias_hh"):
                with torch.no_grad():
                    parameter.zero_()
                parameter.requires_grad_(False)


def rnn(_inputs: tuple[int, ...], classes: int, activation: str = "tanh") -> ReviewRnn:
    """The network with a trained embedding, for reviews of any length.

    >>> rnn((80,), 2)(torch.ones(3, 80, dtype=torch.int64)).shape
    torch.Size([3, 2])
    """
    return ReviewRnn(classes, activation)
