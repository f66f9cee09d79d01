"""The survey: one pass over a few rows that finds the uses of parameters, and what was there before the pass."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from reticent.gradients.batches import Batch, size
from reticent.gradients.following import Args, Function, Kwargs
from reticent.gradients.hidden import refuse_hidden
from reticent.gradients.layouts import Layout
from reticent.gradients.recomputing import nothing_recomputed
from reticent.gradients.tape import NoRule, Pair, Site, SitePlan, Tape
from reticent.gradients.task import LossTask
from reticent.gradients.telling import told


class Unseen(NoRule):
    """A rule cannot be proved where all gradients are zero; other weights or rows may show more."""

    def __init__(self, site: Site):
        super().__init__(site, "gradients of zero, as behind a head that starts at zero, prove no rule")


class Survey(Tape):
    """Runs every known function as it is, and notes whether gradients come by."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], n: int, plan: SitePlan):
        super().__init__(parameters, n, plan, curious=True)
        self.sites: set[Pair] = set()
        self.shown: dict[Pair, bool] = {}

    def tell(self, func: Function, own: Tensor) -> object:
        self.told = True
        return told(func, own, self.refuse)

    def use(self, site: Site, layout: Layout, func: Function, args: Args, kwargs: Kwargs) -> object:
        self.sites.add((site, layout))
        plain = [self.plain(value) for value in args]
        return self._watched((site, layout), func(*plain, **{key: self.plain(value) for key, value in kwargs.items()}))

    def _watched(self, site: Pair, result: object) -> object:
        if isinstance(result, tuple):
            return tuple(self._watched(site, value) for value in result)

        def show(gradient: Tensor) -> None:
            self.shown[site] = self.shown.get(site, False) or bool(gradient.any())

        return self.tap(result, show) if isinstance(result, Tensor) and result.is_floating_point() else result


def surveyed(task: LossTask, rows: Batch, *, silence: bool = False) -> SitePlan:
    """Find the uses of parameters; what leads nowhere is noted, what is all zero refused, or noted for its silence."""
    plan = SitePlan(ambient={id(parameter): parameter for parameter in task.parameters.values()})
    survey = Survey(task.parameters, size(rows), plan)
    examples = survey.begin(rows)
    with torch.enable_grad(), nothing_recomputed() as kept, survey:
        losses = task.losses(examples)
    refuse_hidden(losses, task.parameters)
    survey.end(losses)
    torch.autograd.grad(losses.sum(), survey.anchor, allow_unused=True)
    silent = frozenset(site for site, told in survey.shown.items() if not told)
    if silent and (not silence or len(silent) == len(survey.shown)):
        raise Unseen(min(site for site, _ in silent))
    idle = frozenset(survey.sites - survey.shown.keys())
    return SitePlan(frozenset(survey.sites) - idle - silent, idle, silent, plan.ambient, spared=kept.met)
