"""SELENA (Tang et al. 2022): distil an ensemble that never answers by a model which saw the example; no guarantee."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace

import torch
from torch import nn

from reticent.about import About
from reticent.defences.defended import Count, Defended, Progress, checked, unproved
from reticent.defences.plain import fit, known_chance, seeds
from reticent.defences.settings import sort_settings
from reticent.defences.split_ai import SplitAI, split_ai, sub_training
from reticent.errors import SettingError

WHY = "SELENA hides what one model learns of an example; nothing is proved about what several together pass on"


@dataclass(frozen=True, kw_only=True)
class Selena:
    """K sub-models, each example left out of L of them; the released model learns for `distil_epochs` (or `epochs`).

    >>> Selena()
    Selena(K=25, L=10, distil_epochs=None)
    """

    K: int = 25
    L: int = 10
    distil_epochs: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.L < self.K:
            raise SettingError(
                f"each example is left out of L of the K sub-models and seen by the others, so 1 <= L < K is needed: "
                f"L is {self.L}, K is {self.K}"
            )
        if self.distil_epochs is not None and self.distil_epochs <= 0:
            raise SettingError(f"distil_epochs must be positive, not {self.distil_epochs}")


@dataclass(frozen=True, eq=False)
class Distilled(Defended):
    """A SELENA model, and the ensemble it was distilled from: never release that one."""

    ensemble: SplitAI


def selena(
    make_model: Callable[[], nn.Module],
    examples: Iterable[object],
    *,
    seed: int | None = None,
    progress: Progress | None = None,
    **settings: object,
) -> Distilled:
    """Train Split-AI, let it answer for every training example, and teach a fresh model those answers alone.

    The settings are those of `Selena` and `Plain` (Tang et al. 2022: Split-AI, then Self-Distillation).

    >>> def make(): return nn.Sequential(nn.Linear(4, 2))
    >>> trained = selena(make, (torch.randn(60, 4), torch.arange(60) % 2), K=5, L=2, epochs=1, seed=0)
    >>> print(trained.guarantee)
    no differential privacy: SELENA hides ...
    >>> len(trained.ensemble.models)
    5
    """
    chosen, plain = sort_settings(Selena, settings)
    splitting, chance, order = seeds(seed, 3)
    with known_chance(chance):
        student = make_model()
    found, _ = checked(examples, student)
    pupil = replace(plain, epochs=chosen.distil_epochs or plain.epochs).within(len(found))
    rounds = pupil.rounds(len(found))
    _, sub_rounds = sub_training(plain, len(found), chosen.K, chosen.L)
    count = Count(chosen.K * sub_rounds + rounds, progress)
    ensemble = split_ai(make_model, found, plain, K=chosen.K, L=chosen.L, seed=splitting, tell=count)
    everyone = torch.arange(len(found))
    taught = ensemble.answer(found.x, everyone)
    fit(student, found.x, taught, everyone, pupil, rounds=rounds, seed=order, tell=count)
    about: dict[str, object] = {"settings": asdict(chosen) | asdict(plain)}
    return Distilled(student, unproved(WHY, seeded=seed is not None), count.done, about, ensemble)


ABOUT = About(
    name="selena",
    make=selena,
    kind="defence",
    title="SELENA",
    paper="Tang et al. 2022, Mitigating Membership Inference Attacks by Self-Distillation",
    changes="everything: a defence outside the pipeline",
    guarantee="none: an empirical defence",
    preset={"batch_size": 64.0, "epochs": 30.0, "lr": 0.005},
)
