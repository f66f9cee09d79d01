"""The black-box attack of Salem et al. 2019 as the papers run it: one target, one shadow, four disjoint parts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import softmax
from torch import nn

from reticent.attacks.intervals import Floats
from reticent.attacks.learned import Learner, posterior_features, transferred
from reticent.attacks.metrics import Scores
from reticent.attacks.whitebox import logits_of
from reticent.data import AttackSplit, Examples


def black_box(
    train: Callable[[Examples], nn.Module], split: AttackSplit, kind: Learner, *, top: int | None = 3, seed: int = 0
) -> Scores:
    """Train target and shadow alike, learn to tell the shadow's members, judge the target's (split 2:1:2:1)."""
    target, shadow = train(split.target_train), train(split.shadow_train)
    taught = _sides(shadow, split.shadow_train, split.shadow_test, top)
    judged = _sides(target, split.target_train, split.target_test, top)
    return transferred(taught, judged, kind, seed=seed)


def _sides(model: nn.Module, members: Examples, outsiders: Examples, top: int | None) -> tuple[Floats, Floats]:
    sides = [
        posterior_features(softmax(logits_of(model, part.x), axis=1), np.asarray(part.y), top)
        for part in (members, outsiders)
    ]
    return sides[0], sides[1]
