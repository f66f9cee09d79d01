"""Walk a linear regression with DP-SGD, DPSUR and SA-DPSGD (Figure 1 of both papers): python docs/trajectories.py

Two weights, squared loss, the same noise and the same number of *kept* updates for each, and everything rolled back on
rejection. A line shows how far from the best weights a method was, on average over its last updates and many walks.
Nothing is claimed of privacy: the number of attempts differs, and whoever charges attempts must compare at equal cost.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import reticent as rt

BEST, NOISE, KEPT, WALKS = torch.tensor([1.5, -1.0]), 10.0, 60, 4


def regression(seed: int) -> tuple[Tensor, Tensor]:
    """Five hundred points around a plane."""
    coins = torch.Generator().manual_seed(seed)
    x = torch.randn(500, 2, generator=coins)
    return x, x @ BEST[:, None] + 0.1 * torch.randn(500, 1, generator=coins)


def methods() -> dict[str, rt.methods.Method]:
    """The three, with the same noise; SA-DPSGD asks points that are public."""
    asked = {"holdout": regression(10_000), "holdout_is_public": True, "cooling": 100.0}
    return {
        "DP-SGD": rt.methods.dpsgd(noise_multiplier=NOISE, max_grad_norm=1.0),
        "DPSUR": rt.methods.dpsur(noise_multiplier=NOISE, max_grad_norm=1.0, validation_batch_size=100),
        "SA-DPSGD": rt.methods.sa_dpsgd(noise_multiplier=NOISE, max_grad_norm=1.0, **asked),
    }


def walk(method: rt.methods.Method, seed: int) -> list[Tensor]:
    """The weights after every kept update, from the origin."""
    model = nn.Linear(2, 1, bias=False)
    nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    run = rt.Run(
        model,
        optimizer,
        regression(seed),
        method=method,
        loss="mse",
        batch_size=50,
        rounds=20 * KEPT,
        delta=1e-5,
        seed=seed,
    )
    path: list[Tensor] = []
    for step in run:
        if step.kept:
            path.append(model.weight.detach().clone().flatten())
        if len(path) == KEPT:
            break
    return path


def distance(method: rt.methods.Method, walks: int = WALKS) -> float:
    """How far from the best weights the last third of each path is."""
    ends = [torch.stack(walk(method, seed)[-KEPT // 3 :]) for seed in range(walks)]
    return float((torch.cat(ends) - BEST).norm(dim=1).mean())


def main() -> None:
    """All three."""
    for name, method in methods().items():
        print(f"{name:<9} {distance(method):.3f} from the best weights after {KEPT} kept updates")


if __name__ == "__main__":
    main()
