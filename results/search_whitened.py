"""The search for features: `python results/search_whitened.py` tries what whitened scattering is made of.

Every line leaves one part of it out, or does it otherwise. 6,000 training images learn (least squares, no privacy, the
best of four penalties) and 3,000 others judge, never test images; search-whitened.log has what was seen.
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

LOG = Path(__file__).with_name("search-whitened.log")
LEARN, JUDGE, LEAVES, NUMBERS = 6000, 3000, 2000, 1200
PENALTIES = (0.1, 0.3, 1.0, 3.0)
USUAL: dict[str, dict[str, object]] = {
    "cifar10": {"scales": [3], "colours": "opponent", "mirror": True, "paths": "logarithms", "whiten": True, "seed": 0},
    "fashion-mnist": {
        "scales": [2, 1],
        "colours": "grey",
        "mirror": False,
        "paths": "logarithms",
        "whiten": True,
        "seed": 0,
    },
}
TRIED: dict[str, list[dict[str, object]]] = {
    "cifar10": [
        {},
        {"scales": [2]},
        {"scales": [2], "colours": "rgb"},
        {"scales": [2], "mirror": False},
        {"scales": [2], "paths": "as they are"},
        {"scales": [2], "paths": "group norm"},
        {"scales": [2], "whiten": False},
        {"scales": [2], "seed": 1},
    ],
    "fashion-mnist": [
        {},
        {"scales": [2]},
        {"scales": [3]},
        {"mirror": True},
        {"paths": "as they are"},
        {"paths": "group norm"},
        {"whiten": False},
        {"seed": 1},
    ],
}


def paths(images: Tensor, scales: int, colours: str, mirror: bool) -> Tensor:
    """Scattering (N, colours, paths, H, W)."""
    transform = Scattering(tuple(images.shape[2:]), scales=scales)
    found = []
    for some in torch.split(images, 64):
        turned = torch.einsum("ij,njhw->nihw", OPPONENT.float(), some) if colours == "opponent" else some
        both = (transform(turned) + transform(turned.flip(3))) / 2 if mirror else transform(turned)
        found.append(both.reshape(*some.shape[:2], -1, *both.shape[2:]))
    return torch.cat(found)


def rows(parts: list[Tensor], how: str) -> list[Tensor]:
    """Rows of numbers, scaled by what the last part, the synthetic images, have on average."""
    usual = parts[-1].abs().mean((0, 3, 4), keepdim=True)
    usual[:, :, 0] = parts[-1][:, :, 0].std((0, 2, 3))[None, :, None, None]
    if how == "group norm":
        groups = 27 if parts[0].shape[2] % 27 == 0 else 9  # as in the papers, or for one octave
        return [functional.group_norm(part.flatten(1, 2), groups).flatten(1) for part in parts]
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


def tried(name: str, scales: list[int], colours: str, mirror: bool, paths_as: str, whiten: bool, seed: int) -> float:
    """The share of images set aside that are told right."""
    examples = data.load(name).train
    order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(seed))
    learn, judge = order[:LEARN], order[LEARN : LEARN + JUDGE]
    images = [examples.x[learn], examples.x[judge], dead_leaves(LEAVES, tuple(examples.x.shape[1:]), seed=seed).float()]
    found = [rows([paths(some, scale, colours, mirror) for some in images], paths_as) for scale in scales]
    x, others, leaves = (torch.cat(part, 1) for part in zip(*found, strict=True))
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
    for name, changed in ((name, changed) for name, changes in TRIED.items() for changed in changes):
        settings = {"data": name} | USUAL[name] | changed
        if any(line["settings"] == settings for line in known):
            continue
        asked = {{"paths": "paths_as", "data": "name"}.get(key, key): value for key, value in settings.items()}
        line = {"settings": settings, "accuracy": round(tried(**asked), 4)}  # type: ignore[arg-type]
        with LOG.open("a") as log:
            log.write(json.dumps(line) + "\n")
        print(name, json.dumps(changed), line["accuracy"], flush=True)


if __name__ == "__main__":
    main()
