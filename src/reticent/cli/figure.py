"""Figure 1 of the PD-SGD paper as SVG: how far apart batches may lie, over the test's width, for several noises."""

from __future__ import annotations

import math

from reticent.accounting.claims.pd_sgd import largest_distance

WIDTH, HEIGHT, MARGIN = 360, 280, 48
SIGMAS = (0.01, 0.03, 0.1, 0.3, 1.0)
COLOURS = ("#2a788e", "#414487", "#22a884", "#7ad151", "#440154")


def deniability_figure(dimension: int, chances: tuple[float, float] = (0.05, 1e-5)) -> str:
    """Two panels, one a chance to pass; both axes logarithmic.

    >>> deniability_figure(7680).startswith("<svg")
    True
    """
    gammas = [10 ** (-1 + 5 * step / 60) for step in range(61)]
    panels = "".join(_panel(chance, gammas, dimension, place * WIDTH) for place, chance in enumerate(chances))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH}" height="{HEIGHT}" '
        f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>{panels}</svg>'
    )


def _panel(chance: float, gammas: list[float], dimension: int, left: float) -> str:
    curves = {
        sigma: [math.log10(math.sqrt(largest_distance(chance, sigma, gamma) / dimension)) for gamma in gammas]
        for sigma in SIGMAS
    }
    low, high = math.floor(min(map(min, curves.values()))), math.ceil(max(map(max, curves.values())))

    def x(gamma: float) -> float:
        return left + MARGIN + (math.log10(gamma) + 1) / 5 * (WIDTH - 1.5 * MARGIN)

    def y(value: float) -> float:
        return HEIGHT - MARGIN - (value - low) / (high - low) * (HEIGHT - 2 * MARGIN)

    parts = [f'<text x="{left + WIDTH / 2}" y="24" text-anchor="middle">q(d) at most {chance:g}</text>']
    for power in range(low, high + 1):
        parts.append(f'<line x1="{x(0.1)}" x2="{x(1e4)}" y1="{y(power)}" y2="{y(power)}" stroke="#ddd"/>')
        parts.append(f'<text x="{x(0.1) - 6}" y="{y(power) + 4}" text-anchor="end">1e{power}</text>')
    parts += [
        f'<text x="{x(10.0**power)}" y="{HEIGHT - MARGIN + 16}" text-anchor="middle">1e{power}</text>'
        for power in range(-1, 5)
    ]
    for (sigma, values), colour in zip(curves.items(), COLOURS, strict=True):
        points = " ".join(f"{x(gamma):.1f},{y(value):.1f}" for gamma, value in zip(gammas, values, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<text x="{x(1e4) + 2}" y="{y(values[-1]) + 4}" fill="{colour}">{sigma:g}</text>')
    parts.append(f'<text x="{left + WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">gamma</text>')
    parts.append(f'<text x="{left + 6}" y="{MARGIN - 8}">sqrt(d*/k), one line a sigma</text>')
    return "".join(parts)
