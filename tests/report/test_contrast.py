"""Every colour that text is written in can be read on every ground it may stand on (WCAG 2.2, AA), light and dark."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

STYLE = (files("reticent.report") / "assets" / "style.css").read_text(encoding="utf-8")
VARIABLES = dict(re.findall(r"--([\w-]+): light-dark\((#\w{6}, #\w{6})\);", STYLE))
SERIES = [f"s{number}" for number in range(10)]
ON = {
    "surface": ["ink", "soft", "link", "good", "bad", "mild", *SERIES],  # names of series are written in their colour
    "paper": ["ink", "soft", "link"],
    "good-back": ["good"],
    "bad-back": ["bad"],
    "mild-back": ["mild", "ink", "soft"],
    "ink": ["surface"],  # the button that is chosen
}
TEXT, SHAPES = 4.5, 3.0


def colour(name: str, scheme: str) -> tuple[float, ...]:
    pair = VARIABLES[name].split(", ")
    shade = pair[0 if scheme == "light" else 1]
    return tuple(int(shade[place : place + 2], 16) / 255 for place in (1, 3, 5))


def luminance(shade: tuple[float, ...]) -> float:
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in shade)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: tuple[float, ...], two: tuple[float, ...]) -> float:
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


def test_the_formula_is_that_of_wcag() -> None:
    assert contrast((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)) == pytest.approx(21.0)
    grey = (0x77 / 255,) * 3  # the well-known grey that just fails on white
    assert contrast(grey, (1.0, 1.0, 1.0)) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("ground", "written"), ON.items(), ids=list(ON))
def test_text_can_be_read(scheme: str, ground: str, written: list[str]) -> None:
    poor = {name: contrast(colour(name, scheme), colour(ground, scheme)) for name in written}
    assert {name: ratio for name, ratio in poor.items() if ratio < TEXT} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_ruled_out_can_be_read_on_its_tint(scheme: str) -> None:
    mixed = zip(colour("bad", scheme), colour("surface", scheme), strict=True)
    tint = tuple(0.1 * bad + 0.9 * surface for bad, surface in mixed)
    assert contrast(colour("bad", scheme), tint) >= TEXT


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_can_be_read_on_the_deepest_cell_and_the_focus_can_be_seen(scheme: str) -> None:
    mixed = zip(colour("heat", scheme), colour("surface", scheme), strict=True)
    deepest = tuple(0.6 * heat + 0.4 * surface for heat, surface in mixed)
    assert contrast(colour("ink", scheme), deepest) >= TEXT
    for ground in ("surface", "paper"):
        assert contrast(colour("link", scheme), colour(ground, scheme)) >= SHAPES


def test_no_text_is_written_in_a_colour_that_is_not_checked() -> None:
    checked = {name for written in ON.values() for name in written}
    used = set(re.findall(r"(?<![\w-])color: var\(--([\w-]+)\)", STYLE))
    assert used <= checked
    assert {name for name in VARIABLES if re.fullmatch(r"s\d", name)} == set(SERIES)
