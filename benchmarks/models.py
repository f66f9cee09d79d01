"""The models of the benchmark, each with a batch of made-up examples of the right shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from reticent import models
from reticent.models.residual import PLAIN_WITH_BIAS


class Block(nn.Module):
    """Attention and two linear layers around shortcuts; written with nn.Linear, which every peer knows."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        mixed = self.mix(self.norm1(x)).reshape(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        found = functional.scaled_dot_product_attention(mixed[0], mixed[1], mixed[2])
        x = x + self.out(found.transpose(1, 2).reshape(n, length, width))
        return x + self.narrow(functional.gelu(self.widen(self.norm2(x))))


class Transformer(nn.Module):
    """Token and position embeddings, blocks, and the mean over positions classified."""

    def __init__(self, words: int = 10_000, length: int = 128, width: int = 256, depth: int = 4, classes: int = 2):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, width // 64) for _ in range(depth)))
        self.norm, self.classify = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1]).expand_as(tokens).contiguous()
        x = self.blocks(self.words(tokens) + self.places(places))
        logits: Tensor = self.classify(self.norm(x).mean(1))
        return logits


@dataclass(frozen=True)
class Case:
    """A model, the shape of one example and a batch size; `words` is set where examples are tokens."""

    build: Callable[[], nn.Module]
    shape: tuple[int, ...]
    batch: int
    classes: int = 10
    words: int | None = None

    def examples(self, n: int | None = None) -> tuple[Tensor, Tensor]:
        """Make inputs and labels."""
        n = self.batch if n is None else n
        y = torch.randint(self.classes, (n,))
        return (torch.randn(n, *self.shape) if self.words is None else torch.randint(self.words, (n, *self.shape))), y


def _mnist() -> nn.Module:
    return models.cnn((1, 28, 28), 10)


def _cifar() -> nn.Module:
    return models.cnn((3, 32, 32), 10)


def _frozen_words() -> nn.Module:
    return models.ReviewRnn(vectors=torch.randn(20_000, 100))


def _wrn() -> nn.Module:
    return models.WideResNet(16, 4, classes=10, style=PLAIN_WITH_BIAS)


def _scattering() -> nn.Module:
    return models.scattering_cnn((81, 7, 7), 10)


CASES: dict[str, Case] = {
    "mnist512": Case(_mnist, (1, 28, 28), 512),
    "mnist2048": Case(_mnist, (1, 28, 28), 2048),
    "cifar256": Case(_cifar, (3, 32, 32), 256),
    "cifar1024": Case(_cifar, (3, 32, 32), 1024),
    "imdb256": Case(_frozen_words, (80,), 256, classes=2, words=20_000),
    "imdb_words256": Case(models.ReviewRnn, (80,), 256, classes=2, words=20_000),
    "wrn64": Case(_wrn, (3, 32, 32), 64),
    "purchase2048": Case(lambda: nn.Linear(600, 100), (600,), 2048, classes=100),
    "features2048": Case(lambda: nn.Linear(768, 10), (768,), 2048),
    "transformer32": Case(Transformer, (128,), 32, classes=2, words=10_000),
    "scattering2048": Case(_scattering, (81, 7, 7), 2048),
}
