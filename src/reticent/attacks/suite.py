"""The suite: every attack by its name, on one target with its shadows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from torch import Tensor, nn

from reticent.attacks.intervals import Floats
from reticent.attacks.learned import Learner, cross_fitted, posterior_features, taught, whole_outputs
from reticent.attacks.lira import lira_offline, lira_online
from reticent.attacks.metrics import Scores
from reticent.attacks.rmia import best_offline_a, rmia_offline, rmia_online
from reticent.attacks.signals import Bools, Ints, Round, Signals, confidence
from reticent.attacks.thresholds import by_population, by_reference
from reticent.attacks.whitebox import logits_of, white_box_features
from reticent.errors import UnknownName


@dataclass(frozen=True, eq=False)
class Lessons:
    """What the shadows say of records, and which of these each was trained on: all that learned attacks learn from."""

    labels: Ints
    logits: Floats
    """Shadows x records x classes."""
    keep: Bools


@dataclass(frozen=True, eq=False)
class Target:
    """A trained model, records whose membership is known to the judge alone, and shadows of the same pipeline.

    `logits` are shadows x (records, then population) x classes; `keep` says which shadow saw which record. Where the
    shadows were trained on other records, `others` are their lessons.
    """

    model: nn.Module
    x: Tensor
    y: Tensor
    members: Bools
    population: tuple[Tensor, Tensor]
    logits: Floats
    keep: Bools
    others: Lessons | None = None

    @property
    def lessons(self) -> Lessons:
        """What can be learned about membership from the shadows."""
        return self.others or Lessons(self.y.numpy(), self.logits[:, : len(self.y)], self.keep)

    def signals(self) -> Signals:
        """The score matrix of the shadows alone, for figures that pool many models."""
        lessons = self.lessons
        phi = np.stack([confidence(one, lessons.labels) for one in lessons.logits])
        return Signals(phi, lessons.keep, self._shadow_phi()[:, len(self.y) :])

    def round(self) -> Round:
        """What the adversary has against the target."""
        phi, own = self._shadow_phi(), confidence(self.own_logits(), self._labels())
        cut = len(self.y)
        return Round(own[:cut], phi[:, :cut], self.keep, ~self.keep, own[cut:], phi[:, cut:])

    def own_logits(self) -> Floats:
        """What the target itself says of records and population."""
        asked = [x for x in (self.x, self.population[0]) if len(x)]
        return np.concatenate([logits_of(self.model, x) for x in asked])

    def _shadow_phi(self) -> Floats:
        return np.stack([confidence(one, self._labels()) for one in self.logits])

    def _labels(self) -> Ints:
        return np.concatenate([self.y.numpy(), self.population[1].numpy()])


def _shadow(target: Target) -> Floats:
    """Learn from the whole output vectors of all shadows (Shokri et al. 2017)."""
    lessons = target.lessons
    features = [whole_outputs(one, lessons.labels) for one in lessons.logits]
    inside, outside = (
        np.concatenate([one[chosen] for one, chosen in zip(features, side, strict=True)])
        for side in (lessons.keep, ~lessons.keep)
    )
    asked = whole_outputs(target.own_logits()[: len(target.y)], target.y.numpy())
    return taught(inside, outside, "mlp")(asked)


def _black_box(kind: Learner) -> Callable[[Target], Floats]:
    def attack(target: Target) -> Floats:
        """Learn on the members and non-members of one shadow, as Salem et al. 2019 do; judge the target's answers."""
        lessons = target.lessons
        known = posterior_features(softmax(lessons.logits[0], axis=1), lessons.labels)
        asked = posterior_features(softmax(target.own_logits()[: len(target.y)], axis=1), target.y.numpy())
        return taught(known[lessons.keep[0]], known[~lessons.keep[0]], kind)(asked)

    return attack


def _white_box(target: Target) -> Floats:
    return cross_fitted(white_box_features(target.model, target.x, target.y), target.members)


ATTACKS: dict[str, Callable[[Target], Floats]] = {
    "loss": lambda target: target.round().phi,  # in the order of minus the loss, and told apart in a picture too
    "population": lambda target: by_population(target.round()),
    "reference": lambda target: by_reference(target.round()),
    "shadow": _shadow,
    "lira": lambda target: lira_online(target.round()),
    "lira-offline": lambda target: lira_offline(target.round()),
    "rmia": lambda target: rmia_offline(target.round(), best_offline_a(target.signals())),
    "rmia-online": lambda target: rmia_online(target.round()),
    "blackbox": _black_box("mlp"),
    "blackbox-forest": _black_box("forest"),
    "whitebox": _white_box,
}
"""Every attack by its name: what it scores records of a target by."""


def check_attacks(names: Sequence[str]) -> None:
    """Refuse names that nobody knows before anything is trained."""
    for name in names:
        if name not in ATTACKS:
            raise UnknownName("attack", name, ATTACKS)


def run_attack(name: str, target: Target) -> Scores:
    """The scores of one attack on the target, told apart by who was trained on."""
    check_attacks([name])
    return Scores.of(ATTACKS[name](target), target.members)
