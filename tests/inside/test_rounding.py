"""Rounding in float32: neighbouring sums, as badly chosen as a search can, stay within what the noise makes up for."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from reticent.inside import Clip, Drawn, Everyone, Flat, GradientSum, RoundSettings, Task, as_store
from reticent.inside.rounding import LONGEST, slack


def first_output(model: nn.Module, batch: tuple[Tensor]) -> Tensor:
    """The gradient of an example is the example itself."""
    return model(batch[0])[:, 0]


def total(x: Tensor, limit: int | None = None) -> Tensor:
    model = nn.Linear(x.shape[1], 1, bias=False)
    settings = RoundSettings(len(x), len(x), 1.0, 1.0)
    rng = np.random.default_rng(0)
    drawn = Drawn(Everyone().draw(settings, len(x), rng, {}), rng, {}, as_store((x,)))
    return GradientSum(Task(model, first_output, Flat(model), limit), Clip(), settings).answer(drawn)


def moved(x: Tensor, gone: int) -> float:
    rest = torch.cat([x[:gone], x[gone + 1 :]])
    return float((total(x).double() - total(rest).double()).norm())


def straddling(count: int, width: int, rng: torch.Generator) -> Tensor:
    """Gradients whose running sums stay beside a power of two, each rounded the same way: the worst kind found."""
    last = 2.0 ** (-23 + int(torch.randint(4, 11, (1,), generator=rng)))
    signs = torch.randint(0, 2, (count,), generator=rng).mul(2).sub(1)
    x = torch.zeros(count, width)
    x[:, 0] = (0.5 + torch.randint(-3, 4, (count,), generator=rng) * 0.25 * last) * signs
    rising = int(torch.randint(0, count, (1,), generator=rng))
    x[:rising, 0] = x[:rising, 0].abs()
    x[:, 1:] = 0.1 * torch.randn(count, width - 1, generator=rng)
    x[0], x[0, 0] = 0.0, 1.0
    return x


@pytest.mark.parametrize("width", [1, 8, 64])
@pytest.mark.parametrize("count", [64, 512, 2048])
def test_a_search_finds_no_pair_beyond_half_of_what_is_covered(count: int, width: int) -> None:
    rng, worst = torch.Generator().manual_seed(count + width), 0.0
    plain = [
        torch.full((count, width), 0.1),
        torch.rand(count, width, generator=rng),
        torch.randn(count, width, generator=rng) * 3,
        torch.exp(3 * torch.randn(count, width, generator=rng)),
    ]
    for x in [*plain, *(straddling(count, width, rng) for _ in range(150))]:
        worst = max(worst, moved(x, 0) - 1)
    assert worst > 0, "rounding moved nothing: the search is too weak"
    assert worst <= (slack(count, torch.float32) - 1) / 2


@pytest.mark.slow
@pytest.mark.parametrize(("count", "width"), [(512, 1), (2048, 1), (2048, 8)])
def test_a_climb_stays_within_what_is_covered(count: int, width: int) -> None:
    """Mix the worst pair so far with fresh ones."""
    rng, best = torch.Generator().manual_seed(count * width), straddling(count, width, torch.Generator())
    worst = moved(best, 0)
    for turn in range(6000):
        x = straddling(count, width, rng)
        if turn % 3:
            mixed, some = best.clone(), torch.randint(0, count, (count // 16,), generator=rng)
            mixed[some] = x[some]
            x = mixed
            x[0], x[0, 0] = 0.0, 1.0
        if (found := moved(x, 0)) > worst:
            worst, best = found, x
    assert worst <= 1 + (slack(count, torch.float32) - 1) / 2, f"{(worst - 1) / count * 2**24} units an example"


def test_long_sums_go_on_in_float64() -> None:
    """Else the error would grow with the square of the draw."""
    x = torch.full((3 * LONGEST - 1, 1), 0.1)
    parts = [total(x[start : start + LONGEST]).double() for start in range(0, len(x), LONGEST)]
    assert torch.equal(total(x), sum(parts, torch.zeros(1).double()).float())
    assert torch.equal(total(x[:LONGEST]), total(x[:LONGEST], LONGEST))


@pytest.mark.parametrize("limit", [1, 7, 64])
def test_micro_batches_are_added_in_float64(limit: int) -> None:
    x = torch.rand(300, 5, generator=torch.Generator().manual_seed(0)) / 3
    torch.testing.assert_close(total(x, limit), x.double().sum(0).float(), rtol=2e-7, atol=0)


def test_slack_grows_with_the_draw_and_never_shrinks() -> None:
    sizes = [0.1, 1, 10, 100, 512, 1000, 2048, 2560, 5000, 60_000, 1_000_000]
    for kind in (torch.float32, torch.float64):
        found = [slack(size, kind) for size in sizes]
        assert found == sorted(found)
        assert found[0] > 1 + 20 * 2.0**-24, "one example alone has a norm that is rounded"
    assert slack(256, torch.float32) < 1.0004
    assert slack(2048, torch.float32) < 1.004
    assert math.isclose(slack(60_000, torch.float64), 1.0148, abs_tol=1e-3)
