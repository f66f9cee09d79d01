"""Where a run stands: the counts and settings that a checkpoint holds beside model, optimizer and key."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import NotRequired, TypedDict

from torch import Tensor

from reticent.inside import RoundSettings


class StandingTree(TypedDict):
    """A standing as a checkpoint holds it."""

    number: int
    kept: int
    rejections: int
    numbers: dict[str, float]
    over: bool
    remembered: NotRequired[dict[str, Tensor]]


@dataclass(frozen=True)
class Step:
    """One finished round; all of it is public."""

    number: int
    kept: bool


@dataclass(frozen=True)
class Standing:
    """How far a run has come; every round makes a new one.

    >>> Standing(RoundSettings(10, 5, 1.0, 1.0)).after(kept=False).rejections
    1
    """

    settings: RoundSettings
    """Those of the next round, before the control turns them."""
    number: int = 0
    kept: int = 0
    rejections: int = 0
    """How many were dropped in a row."""
    ended: bool = False
    """Whether the filter of an adaptive plan lets nothing more out."""
    remembered: dict[str, Tensor] = field(default_factory=dict, repr=False)
    """What the direction remembers; no tensor of it is ever changed."""

    def after(
        self, *, kept: bool, settings: RoundSettings | None = None, remembered: dict[str, Tensor] | None = None
    ) -> Standing:
        """One round later."""
        return replace(
            self,
            remembered=self.remembered if remembered is None else remembered,
            settings=self.settings if settings is None else settings,
            number=self.number + 1,
            kept=self.kept + kept,
            rejections=0 if kept else self.rejections + 1,
        )

    def to_tree(self, *, over: bool) -> StandingTree:
        """What a checkpoint holds of it, and whether the run is over."""
        return {
            "number": self.number,
            "kept": self.kept,
            "rejections": self.rejections,
            "numbers": asdict(self.settings),
            "over": over,
            "remembered": self.remembered,
        }

    def restored(self, tree: StandingTree) -> Standing:
        """That of the checkpoint; the settings keep their kind."""
        return Standing(
            replace(self.settings, **tree["numbers"]),  # type: ignore[arg-type]
            tree["number"],
            tree["kept"],
            tree["rejections"],
            tree["over"],
            tree.get("remembered", {}),
        )
