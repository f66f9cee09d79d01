"""The search for CIFAR-10's features: `python results/search_photos.py` tries what `scattering-photos` is made of.

Every line leaves one part of it out, or does it otherwise. 6,000 training images learn (least squares, no privacy, the
best of four penalties) and 3,000 others judge, never test images; search-photos.log has what was seen.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from reticent import data
from reticent.data.features.leaves import OPPONENT, dead_leaves
from reticent.data.features.scattering import Scattering
from reticent.data.features.whitened import OFFSET, whitening

LOG = Path(__file__).with_name("search-photos.log")
LEARN, JUDGE, LEAVES, NUMBERS = 6000, 3000, 2000, 1200
PENALTIES = (0.1, 0.3, 1.0, 3.0)
USUAL = {"scales": 3, "colours": "opponent", "mirror": True, "paths": "logarithms", "whiten": True, "seed": 0}
TRIED: list[dict[str, object]] = [
    {},
    {"scales": 2},
    {"scales": 2, "colours": "rgb"},
    {"scales": 2, "mirror": False},
    {"scales": 2, "paths": "as they are"},
    {"scales": 2, "paths": "group norm"},
    {"scales": 2, "whiten": False},
    {"scales": 2, "seed": 1},
]


def paths(images: Tensor, scales: int, colours: str, mirror: bool) -> Tensor:
    """Scattering (N, colours, paths, H, W)."""
    transform = Scattering((32, 32), scales=scales)
    found = []
    for some in torch.split(images, 64):
        turned = torch.einsum("ij,njhw->nihw", OPPONENT.float(), some) if colours == "opponent" else some
        both = (transform(turned) + transform(turned.flip(3))) / 2 if mirror else transform(turned)
        found.append(both.reshape(len(some), 3, -1, *both.shape[2:]))
    return torch.cat(found)


def rows(parts: list[Tensor], how: str) -> list[Tensor]:
    """Rows of numbers, scaled by what the last part, the synthetic images, have on average."""
    usual = parts[-1].abs().mean((0, 3, 4), keepdim=True)
    usual[:, :, 0] = parts[-1][:, :, 0].std((0, 2, 3))[None, :, None, None]
    if how == "group norm":
        return [functional.group_norm(part.flatten(1, 2), 27).flatten(1) for part in parts]
    if how == "as they are":
        return [(part / usual).flatten(1) for part in parts]
    logarithms = [((part[:, :, 1:] / usual[:, :, 1:]).clamp(min=0) + OFFSET).log() for part in parts]
    return [
        torch.cat([part[:, :, :1] / usual[:, :, :1], logs], 2).flatten(1)
        for part, logs in zip(parts, logarithms, strict=True)
    ]


def accuracy(x: Tensor, y: Tensor, others: Tensor, truth: Tensor) -> float:
    """Least squares of the classes on centred rows, by the best of four penalties."""
    mean, goal = x.mean(0), functional.one_hot(y, 10).float()
    products, best = (x - mean).T @ (x - mean), 0.0
    for penalty in PENALTIES:
        ridge = products + penalty * products.diagonal().mean() * torch.eye(len(products))
        weights = torch.linalg.solve(ridge, (x - mean).T @ (goal - goal.mean(0)))
        right = (((others - mean) @ weights + goal.mean(0)).argmax(1) == truth).float().mean()
        best = max(best, right.item())
    return best


def tried(scales: int, colours: str, mirror: bool, paths_as: str, whiten: bool, seed: int) -> float:
    """The share of images set aside that are told right."""
    examples = data.load("cifar10").train
    order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(seed))
    learn, judge = order[:LEARN], order[LEARN : LEARN + JUDGE]
    images = [examples.x[learn], examples.x[judge], dead_leaves(LEAVES, (3, 32, 32), seed=seed).float()]
    x, others, leaves = rows([paths(some, scales, colours, mirror) for some in images], paths_as)
    middle = leaves.mean(0)
    if whiten:
        turn = whitening(leaves - middle, NUMBERS)
    else:  # the same directions, each as long as it is
        turn = torch.linalg.svd(leaves - middle, full_matrices=False).Vh[:NUMBERS].T
    x, others = (functional.normalize((part - middle) @ turn, dim=1) for part in (x, others))
    return accuracy(x, examples.y[learn], others, examples.y[judge])


def main() -> None:
    """All that is to be tried and is not in the log."""
    torch.set_num_threads(1)
    known = [json.loads(line) for line in LOG.read_text().splitlines()] if LOG.exists() else []
    for changed in TRIED:
        settings = USUAL | changed
        if any(line["settings"] == settings for line in known):
            continue
        asked = {name if name != "paths" else "paths_as": value for name, value in settings.items()}
        line = {"settings": settings, "accuracy": round(tried(**asked), 4)}  # type: ignore[arg-type]
        with LOG.open("a") as log:
            log.write(json.dumps(line) + "\n")
        print(json.dumps(changed), line["accuracy"], flush=True)


if __name__ == "__main__":
    main()
