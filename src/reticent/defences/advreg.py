"""AdvReg (Nasr, Shokri and Houmansadr 2018): train against an adversary who recognises members; no guarantee."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from reticent.about import About
from reticent.defences.defended import Count, Defended, Progress, checked, unproved
from reticent.defences.game import AdversarialGame
from reticent.defences.inference import InferenceModel
from reticent.defences.plain import device_of, known_chance, seeds
from reticent.defences.settings import sort_settings
from reticent.errors import DataError, SettingError

WHY = "AdvReg resists the adversary it was trained against; nothing is proved about any other"


@dataclass(frozen=True, kw_only=True)
class AdvReg:
    """What AdvReg adds to plain training: `penalty` is the paper's lambda, `inference_steps` its k.

    >>> AdvReg(penalty=2.0)
    AdvReg(penalty=2.0, reference_share=0.3, inference_steps=1, inference_lr=0.001)
    """

    penalty: float = 1.0
    reference_share: float = 0.3
    inference_steps: int = 1
    inference_lr: float = 1e-3

    def __post_init__(self) -> None:
        if self.penalty < 0:
            raise SettingError(f"penalty {self.penalty} would help the attacker: it must not be negative")
        if not 0 < self.reference_share < 1:
            raise SettingError(f"reference_share must lie between 0 and 1, not {self.reference_share}")
        if self.inference_steps < 1 or self.inference_lr <= 0:
            raise SettingError("inference_steps must be at least 1, inference_lr above 0: the adversary has to learn")


@dataclass(frozen=True, eq=False)
class Regularised(Defended):
    """An AdvReg model, its last adversary, and the rows it was trained on and those it was compared with.

    Only `members` were in the classification loss: attack the model on those, or it looks safer than it is.
    """

    inference: InferenceModel
    members: Tensor
    reference: Tensor


def advreg(
    model: nn.Module,
    examples: Iterable[object],
    *,
    reference: Iterable[object] | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    **settings: object,
) -> Regularised:
    """Train `model` by the min-max game of Nasr et al. 2018: classify well, and let no adversary recognise members.

    The adversary compares members with `reference`, examples that are not trained on: the caller's own, or else a
    share of `examples` set aside. The settings are those of `AdvReg` and `Plain`.

    >>> x, y = torch.randn(60, 4), torch.arange(60) % 2
    >>> trained = advreg(nn.Linear(4, 2), (x, y), penalty=0.5, epochs=1, seed=0)
    >>> trained.guarantee.status, len(trained.members), len(trained.reference)
    ('none', 42, 18)
    """
    chosen, plain = sort_settings(AdvReg, settings)
    found, classes = checked(examples, model)
    setting_aside, chance, order = seeds(seed, 3)
    if reference is None:
        members, compared = set_aside(len(found), chosen.reference_share, setting_aside)
        others = found.take(compared)
    else:
        members, compared = torch.arange(len(found)), torch.arange(0)
        others, _ = checked(reference, model)
    plain = plain.within(len(members))
    count = Count(plain.rounds(len(members)), progress)
    with known_chance(chance):
        inference = InferenceModel(classes).to(device_of(model))
        game = AdversarialGame(model, inference, chosen.penalty, chosen.inference_steps, chosen.inference_lr)
        game.play(found.take(members), others, plain, rounds=count.total, seed=order, tell=count)
    about = {"settings": asdict(chosen) | asdict(plain), "members": len(members), "reference": len(others)}
    guarantee = unproved(WHY, seeded=seed is not None)
    return Regularised(model, guarantee, count.done, about, inference, members, compared)


def rows_used(size: int, seed: int, **settings: object) -> tuple[Tensor, Tensor]:
    """The rows that `advreg` with this seed trains on, and those it sets aside as reference.

    >>> x, y = torch.randn(60, 4), torch.arange(60) % 2
    >>> torch.equal(rows_used(60, seed=1)[0], advreg(nn.Linear(4, 2), (x, y), epochs=1, seed=1).members)
    True
    """
    chosen, _ = sort_settings(AdvReg, settings)
    return set_aside(size, chosen.reference_share, seeds(seed, 3)[0])


def set_aside(size: int, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Rows to train on and rows to compare with: a random split, both sorted.

    >>> [len(part) for part in set_aside(10, 0.3, seed=0)]
    [7, 3]
    """
    cut = round(size * share)
    if cut < 1 or cut >= size:
        raise DataError(
            f"{size} examples are too few to set a share of {share} aside as reference: give reference examples"
        )
    order = torch.randperm(size, generator=torch.Generator().manual_seed(seed))
    return order[cut:].sort().values, order[:cut].sort().values


ABOUT = About(
    name="advreg",
    make=advreg,
    kind="defence",
    title="AdvReg",
    paper="Nasr et al. 2018, Machine Learning with Membership Privacy using Adversarial Regularization",
    changes="everything: a defence outside the pipeline",
    guarantee="none: an empirical defence",
    preset={"batch_size": 64.0, "epochs": 30.0, "lr": 0.005},
)
