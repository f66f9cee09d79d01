"""Small runs of the methods, the same on any number of ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import reticent as rt
from reticent.accounting import Entry
from reticent.methods import Method

ROUNDS = 50
SIZE = 60

METHODS: dict[str, Any] = {
    "dpsgd": lambda: rt.methods.dpsgd(noise_multiplier=1.0),
    "dpsur": lambda: rt.methods.dpsur(noise_multiplier=1.0),
    "sa_dpsgd": lambda: rt.methods.sa_dpsgd(noise_multiplier=1.0),
    "dpis": lambda: rt.methods.dpis(norm_noise=0.5, norms="refresh"),
    "auto_s": lambda: rt.methods.auto_s(noise_multiplier=1.0),
    "dpsign_sgd": lambda: rt.methods.dpsign_sgd(noise_multiplier=1.0),
    "disk": lambda: rt.methods.get("disk", noise_multiplier=1.0),
    "band_mf": lambda: rt.methods.get("band_mf", noise_multiplier=1.0, bands=4),
    "blt": lambda: rt.methods.get("blt", noise_multiplier=4.0),
    "layer_clip": lambda: rt.methods.get("layer_clip", noise_multiplier=1.0),
}


def blobs(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(1)
    y = torch.arange(SIZE) % 2
    return (torch.randn(SIZE, 4, generator=rng) + 2.0 * y[:, None]).to(dtype), y


def network(dtype: torch.dtype = torch.float32) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)).to(dtype)


def make(
    method: str | Method = "dpsgd",
    *,
    dtype: torch.dtype = torch.float32,
    rounds: int = ROUNDS,
    examples: Any = None,
    model: nn.Module | None = None,
    **said: Any,
) -> rt.Run:
    """A run of a small network; every rank begins with weights of its own, which must not matter."""
    with torch.random.fork_rng():
        if not torch.distributed.is_initialized():
            torch.manual_seed(1000)  # as the first of several ranks has it
        model = network(dtype) if model is None else model
    chosen = METHODS[method]() if isinstance(method, str) else method
    settings: dict[str, Any] = {"batch_size": 12, "rounds": rounds, "seed": 3}
    if chosen.adaptive is not None:
        settings |= {"budget": rt.Budget(15.0, 1e-3), "rounds": None, "epochs": rounds * 12 / SIZE}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    return rt.Run(model, optimizer, blobs(dtype) if examples is None else examples, method=chosen, **settings | said)


def weights(run: rt.Run) -> Tensor:
    return torch.cat([part.detach().reshape(-1).double() for part in run.model.parameters()])


def released(run: rt.Run) -> list[tuple[int, int, object]]:
    """The ledger without its seals, which tell the last digits of a sum apart."""
    return [(entry.round, entry.query, entry.event) for entry in run.ledger]


def entries(run: rt.Run) -> list[Entry]:
    return list(run.ledger)


def lines(folder: Path) -> bytes:
    return (folder / "ledger.jsonl").read_bytes()
