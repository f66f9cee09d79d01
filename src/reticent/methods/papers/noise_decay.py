"""DP-SGD with decaying noise (Yu et al. 2019): four schedules, all fixed in advance."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.errors import UnknownName
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd
from reticent.outside import ExponentialDecay, NoiseDecay, PolynomialDecay, StepDecay, TimeDecay

SCHEDULES: dict[str, type[NoiseDecay]] = {
    "time": TimeDecay,
    "exponential": ExponentialDecay,
    "step": StepDecay,
    "polynomial": PolynomialDecay,
}


def noise_decay(
    *,
    noise_multiplier: float | None = None,
    max_grad_norm: float = 1.0,
    schedule: str = "exponential",
    k: float | None = None,
    period: int | None = None,
    end: float | None = None,
) -> Method:
    """Less noise from epoch to epoch (Yu et al. 2019, section 5); what is not given keeps the schedule's default.

    >>> noise_decay(noise_multiplier=4.0, schedule="step").control
    StepDecay(k=0.6, period=10)
    """
    kind = SCHEDULES.get(schedule)
    if kind is None:
        raise UnknownName("schedule", schedule, SCHEDULES)
    given = {name: value for name, value in {"k": k, "period": period, "end": end}.items() if value is not None}
    for name in given:
        if name not in kind.__dataclass_fields__:
            raise UnknownName(f"option of the {schedule} schedule", name, kind.__dataclass_fields__)
    base = dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    return replace(base, name="noise_decay", control=kind(**given))


ABOUT = About(
    name="noise_decay",
    make=noise_decay,
    kind="baseline",
    title="Noise decay",
    paper="Yu et al. 2019, Differentially Private Model Publishing for Deep Learning",
    changes="control: less noise from epoch to epoch, by a schedule fixed in advance",
    guarantee="proved (PLD or RDP of the whole schedule); the paper's own accounting is not used",
    equations={"schedules": "outside/noise_decay.py"},
    options={
        "schedule": "time, exponential, step or polynomial",
        "k": "how fast the noise falls",
        "period": "epochs of a step, or until the polynomial ends",
        "end": "polynomial: last noise as a share of the first",
    },
)
