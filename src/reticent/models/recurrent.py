"""The recurrent networks of DPSUR (Table 7) and DPIS (Table 1) for film reviews."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from reticent.models.activations import activation as named

VOCABULARY = 20_000
_EMBEDDING, _HIDDEN = 100, 32


class ReviewRnn(nn.Module):
    """Embed, project, read in both directions, average over all positions (padding too), classify.

    `vectors` (one row a word, say GloVe) are public and stay frozen; without them the embedding is trained.
    `single_bias` gives the LSTM one bias vector a gate as Keras has: the second is held at zero. `last_state` takes
    what each direction has read in the end, instead of the average.

    >>> sum(p.numel() for p in ReviewRnn().parameters())
    2021202
    """

    def __init__(
        self,
        classes: int = 2,
        activation: str = "tanh",
        *,
        vectors: Tensor | None = None,
        single_bias: bool = False,
        last_state: bool = False,
    ):
        super().__init__()
        self.last_state = last_state
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
        read = (
            torch.cat([states[:, -1, :_HIDDEN], states[:, 0, _HIDDEN:]], dim=1) if self.last_state else states.mean(1)
        )
        logits: Tensor = self.classify(read)
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


def glove_rnn(_inputs: tuple[int, ...], classes: int, activation: str = "tanh") -> ReviewRnn:
    """DPIS's network: frozen word vectors, which are put in later, Keras's single bias and first weights, last states.

    >>> sum(p.numel() for p in glove_rnn((80,), 2).parameters() if p.requires_grad)
    20946
    """
    blank = torch.zeros(VOCABULARY, _EMBEDDING)
    network = ReviewRnn(classes, activation, vectors=blank, single_bias=True, last_state=True)
    begin_as_keras(network)
    return network


def begin_as_keras(network: nn.Module) -> None:
    """First weights as Keras draws them: uniform by Glorot, orthogonal between states, biases 0, forget gates open.

    An LSTM that forgets half of all it knows at every word cannot learn from its last state.
    """
    for module in network.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.LSTM):
            for name, part in module.named_parameters():
                if name.startswith("weight"):
                    (nn.init.orthogonal_ if "_hh_" in name else nn.init.xavier_uniform_)(part)
                else:
                    nn.init.zeros_(part)
                if name.startswith("bias_ih"):
                    with torch.no_grad():
                        part[module.hidden_size : 2 * module.hidden_size] = 1.0
