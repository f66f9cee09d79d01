"""The survey: one pass over a few rows that finds the uses of parameters, and what was there before the pass."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from reticent.gradients.batches import Batch, size
from reticent.gradients.following import Args, Function, Kwargs
from reticent.gradients.hidden import refuse_hidden
from reticent.gradients.layouts import Layout
from reticent.gradients.tape import NoRule, Site, SitePlan, Tape
from reticent.gradients.task import LossTask


class Unseen(NoRule):
    """A rule cannot be proved where all gradients are zero; other weights or rows may show more."""

    def __init__(self, site: Site):
        super().__init__(site, "gradients of zero, as behind a head that starts at zero, prove no rule")


class Survey(Tape):
    """Runs every known function as it is, and notes whether gradients come by."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], n: int, plan: SitePlan):
        super().__init__(parameters, n, plan, curious=True)
        self.sites: set[tuple[Site, Layout]] = set()
        self.shown: dict[Site, bool] = {}

    def use(self, site: Site, layout: Layout, func: Function, args: Args, kwargs: Kwargs) -> object:
        self.sites.add((site, layout))
        plain = [self.plain(value) for value in args]
        return self._watched(site, func(*plain, **{key: self.plain(value) for key, value in kwargs.items()}))

    def _watched(self, site: Site, result: object) -> object:
        if isinstance(result, tuple):
            return tuple(self._watched(site, value) for value in result)

        def show(gradient: Tensor) -> None:
            self.shown[site] = self.shown.get(site, False) or bool(gradient.any())

        return self.tap(result, show) if isinstance(result, Tensor) and result.is_floating_point() else result


def surveyed(task: LossTask, rows: Batch) -> SitePlan:
    """Find the uses of parameters; what is all zero is refused, what leads nowhere noted."""
    plan = SitePlan(ambient={id(parameter): parameter for parameter in task.parameters.values()})
    survey = Survey(task.parameters, size(rows), plan)
    examples = survey.begin(rows)
    with torch.enable_grad(), survey:
        losses = task.losses(examples)
    refuse_hidden(losses, task.parameters)
    survey.end(losses)
    torch.autograd.grad(losses.sum(), survey.anchor, allow_unused=True)
    for site, told in survey.shown.items():
        if not told:
            raise Unseen(site)
    idle = frozenset(site for site, _ in survey.sites if site not in survey.shown)
    return SitePlan(frozenset(survey.sites), idle, plan.ambient)
