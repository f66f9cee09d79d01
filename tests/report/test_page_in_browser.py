"""The page in a real browser: headless Chromium draws it, sorts it, hides series, goes dark, prints, and shrinks."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import reticent as rt
from reticent.audits import verdict
from reticent.cli import app
from reticent.report import write_page

DOTS = "#chart-accuracy [aria-label=dot] :is(circle, path)"
CONTRAST = """
const shade = (colour) => {
  const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number);
  const light = [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return { a, light: 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2] };
};
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const found = shade(getComputedStyle(at).backgroundColor);
    if (found.a > 0.9) return found.light;
  }
  return 1;
};
const poor = [];
for (const element of document.querySelectorAll("body *")) {
  const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!text || !element.checkVisibility() || element.closest("script, style, noscript")) continue;
  const style = getComputedStyle(element);
  const drawn = element instanceof SVGElement ? style.fill : style.color;
  if (drawn === "none") continue;
  const [low, high] = [shade(drawn).light, behind(element)].sort((a, b) => a - b);
  const ratio = (high + 0.05) / (low + 0.05);
  if (ratio < 4.5) poor.push([element.textContent.trim().slice(0, 40), drawn, Math.round(ratio * 100) / 100]);
}
return poor;
"""


@pytest.fixture
def page(browser: Any, folder: Path) -> Iterator[Any]:
    """The browser with the page opened; whatever a test does, nothing may be complained of on the console."""
    browser.get_log("performance")
    browser.get(write_page(folder, private=True).as_uri())
    wait(lambda: browser.execute_script("return document.querySelectorAll('.chart svg').length") == 7)
    yield browser
    complaints = browser.get_log("browser")
    emulate(browser, width=1280)
    media(browser)
    assert complaints == []


def wait(until: Callable[[], Any], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, "the page did not get there"
        time.sleep(0.02)


def emulate(browser: Any, width: int, *, mobile: bool = False) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": mobile}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def media(browser: Any, *, scheme: str = "light", kind: str = "") -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": kind, "features": features})


def all_of(browser: Any, selector: str) -> list[Any]:
    return list(browser.find_elements("css selector", selector))


def no_empty_boxes(browser: Any) -> bool:
    """Every chart is drawn, and every section and card says something under its heading."""
    return bool(
        browser.execute_script(
            "return !document.querySelector('.empty, .chart:empty') && [...document.querySelectorAll('section, .card')]"
            ".every((box) => box.textContent.trim().length > 25 + (box.querySelector('h1, h2')?.innerText.length ?? 0))"
        )
    )


def column(browser: Any, number: int) -> list[str]:
    return [cell.text for cell in all_of(browser, f"#guarantees tbody tr > :nth-child({number})")]


def background(browser: Any, selector: str = "body") -> str:
    script = "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor"
    return str(browser.execute_script(script, selector))


# -- drawing ---------------------------------------------------------------------------------------------------------


def test_it_draws_every_chart_and_asks_nobody(page: Any) -> None:
    asked = [
        entry["message"] for entry in page.get_log("performance") if "Network.requestWillBeSent" in entry["message"]
    ]
    assert not any('"url":"http' in message for message in asked)
    assert not page.execute_script("return window.hacked")
    for chart in all_of(page, ".chart svg"):
        assert chart.get_attribute("role") == "img"
        assert chart.get_attribute("aria-label")
        assert chart.size["width"] > 200
        assert len(chart.find_elements("css selector", "path, circle, rect, line")) > 5


def test_points_tell_more_when_hovered(page: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    for dots, says in ((DOTS, "epsilon 1.00, proved"), ("#chart-accuracy [fill='var(--surface)'] path", "as claimed")):
        dot = all_of(page, dots)[0]
        page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", dot)
        ActionChains(page).move_to_element(dot).perform()
        wait(lambda says=says: any(says in tip.text for tip in all_of(page, "#chart-accuracy [aria-label=tip]")))


def test_an_attack_tells_more_when_hovered(page: Any) -> None:
    for chart, says in (("#chart-attacks", "false alarms"), ("#chart-scores", "members")):
        svg = all_of(page, f"{chart} svg")[0]
        page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", svg)
        across = page.execute_script(
            "const b = arguments[0].getBoundingClientRect(); return [b.x + b.width * 0.8, b.y + b.height * 0.3]", svg
        )
        page.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": across[0], "y": across[1]})
        wait(lambda chart=chart, says=says: any(says in tip.text for tip in all_of(page, f"{chart} [aria-label=tip]")))


def test_an_attack_can_be_hidden_in_both_charts(page: Any) -> None:
    lines = "return document.querySelectorAll('#chart-attacks [aria-label=line] path').length"
    boxes = "return document.querySelector('#chart-scores').textContent"
    before = page.execute_script(lines)
    assert "LiRA online" in page.execute_script(boxes)
    button = next(button for button in all_of(page, "#attack-legend button") if button.text == "LiRA online")
    page.execute_script("arguments[0].click()", button)
    assert page.execute_script(lines) == before - 2, "the sure part and the thin one"
    assert "LiRA online" not in page.execute_script(boxes)
    assert "loss threshold" in page.execute_script(boxes)


def test_claimed_epsilons_are_hollow(page: Any) -> None:
    drawn = "[...document.querySelectorAll('#chart-accuracy [aria-label=dot]')]"
    hollow = f"{drawn}.filter((dots) => dots.getAttribute('fill') === 'var(--surface)')"
    assert page.execute_script(f"return {hollow}.reduce((sum, dots) => sum + dots.children.length, 0)") == 4


def strange(records: Any, kind: str) -> list[dict[str, Any]]:
    """Results at the edge of what a page may be asked to show."""
    one = records.run("dpsgd", 3.0, 0, 0.5)
    return {
        "one run": [one],
        "only failures": [records.failed("dpsgd", 3.0, 0, "no luck")],
        "no test split": [one | {"accuracy": None, "classes": None}],
        "no guarantee": [records.run("pd_sgd", None, 0, 0.5)],
        "many classes": [
            one | {"classes": [{"class": number, "examples": 9, "accuracy": number / 100} for number in range(100)]}
        ],
    }[kind]


CHARTS = {"one run": 3, "only failures": 0, "no test split": 1, "no guarantee": 2, "many classes": 3}


@pytest.mark.parametrize("kind", CHARTS)
def test_strange_results_make_no_errors_and_no_empty_boxes(
    browser: Any, tmp_path: Path, records: Any, kind: str
) -> None:
    lines = strange(records, kind)
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    browser.get(write_page(tmp_path).as_uri())
    wait(lambda: len(all_of(browser, ".chart > *")) == CHARTS[kind])
    assert no_empty_boxes(browser)
    assert browser.get_log("browser") == []


# -- one model -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a model that was made in Python, attacked and audited."""
    folder = tmp_path_factory.mktemp("own") / "run"
    rng = torch.Generator().manual_seed(0)
    y = torch.arange(300) % 3
    x = torch.randn(300, 4, generator=rng) + torch.nn.functional.one_hot(y, 4)
    torch.manual_seed(0)
    parts = {
        "test": (x[150:250], y[150:250]),
        "validation": (x[250:], y[250:]),
        "classes": ["stays", "leaves", "returns"],
    }
    trained = rt.fit(nn.Linear(4, 3), (x[:150], y[:150]), epsilon=3.0, epochs=4, folder=folder, name="Visits", **parts)
    trained.attack(shadows=4, records=50, attacks=["loss", "lira"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verdict, "PROBES", {"ledger": verdict.PROBES["ledger"]})  # of what it finds a page shows one row
        trained.audit(canaries=20, runs=20, seed=0)
    result = CliRunner().invoke(app, ["report", str(folder), "--without-privacy", "0.9"])
    assert result.exit_code == 0, result.output
    return folder / "report.html"


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_the_page_of_ones_own_model_has_no_empty_box(browser: Any, own_page: Path, width: int) -> None:
    emulate(browser, width, mobile=width < 1280)
    browser.get(own_page.as_uri())
    names = ["spending", "standing", "learning", "confusion", "attacks", "scores", "audit"]
    wait(lambda: len(all_of(browser, ".chart svg")) == len(names))
    assert [chart.get_attribute("id") for chart in all_of(browser, ".chart")] == [f"chart-{name}" for name in names]
    assert no_empty_boxes(browser)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(CONTRAST) == []
    assert "leaves" in browser.execute_script("return document.querySelector('#chart-confusion').textContent")
    assert [card.text.split("\n")[0] for card in all_of(browser, ".card")] == [
        "Guarantee",
        "Accuracy",
        "Attacks",
        "Audit",
    ]
    assert "must not be published" in browser.execute_script("return document.querySelector('#publish').textContent")
    assert browser.get_log("browser") == []
    emulate(browser, width=1280)


def test_what_proves_no_epsilon_stands_beside_the_axis_and_wide_intervals_leave_it_as_it_is(
    browser: Any, tmp_path: Path, records: Any
) -> None:
    """The axes are those of the proved points: neither a point far below nor a wide interval stretches them."""
    lines = [records.run("dpsgd", 3.0, seed, value) for seed, value in enumerate((0.60, 0.90, 0.90))]
    lines += [records.run("auto_s", 3.0, seed, 0.82) for seed in range(3)]
    axis = "#chart-accuracy [aria-label='y-axis tick label'] text"
    seen = []
    for more in ([], [records.run("pd_sgd", None, 0, 0.2)]):
        (tmp_path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines + more))
        browser.get(write_page(tmp_path).as_uri())
        wait(lambda: all_of(browser, "#chart-accuracy svg"))
        seen.append([tick.text for tick in all_of(browser, axis)])
    assert seen[0] == seen[1]
    assert float(seen[0][0].rstrip(" %")) > 70, "the interval of the first method goes down to 37 %"
    assert "20 %" in browser.execute_script("return document.querySelector('#chart-accuracy').textContent")


# -- sorting and hiding ----------------------------------------------------------------------------------------------


def test_tables_sort_up_and_down_and_say_so(page: Any) -> None:
    before = column(page, 6)
    head = all_of(page, "#guarantees thead th")[5]
    button = head.find_element("css selector", "button")
    page.execute_script("arguments[0].click()", button)
    rising = [float(text.split(" ")[0]) for text in column(page, 6) if text[0].isdigit()]
    assert rising == sorted(rising)
    assert head.get_attribute("aria-sort") == "ascending"
    assert column(page, 6)[-1] == "–", "what has no value stays at the end"
    page.execute_script("arguments[0].click()", button)
    falling = [float(text.split(" ")[0]) for text in column(page, 6) if text[0].isdigit()]
    assert falling == sorted(falling, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    assert column(page, 6)[-1] == "–"
    assert sorted(column(page, 6)) == sorted(before)


def test_the_keyboard_is_enough_to_sort_and_to_hide(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    button = all_of(page, "#guarantees thead button")[0]
    button.send_keys(Keys.ENTER)
    names = column(page, 1)
    assert names == sorted(names, key=str.casefold)
    all_of(page, "#legend button")[1].send_keys(Keys.SPACE)
    assert all_of(page, "#legend button")[1].get_attribute("aria-pressed") == "false"


def test_the_keyboard_reaches_every_control(page: Any) -> None:
    """From the top, Tab comes by everything that can be used, and nothing holds it fast."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    wanted = page.execute_script(
        "window.reached = new Set(); document.activeElement.blur(); window.scrollTo(0, 0);"
        "document.addEventListener('focusin', (event) => window.reached.add(event.target));"
        "window.controls = [...document.querySelectorAll('a[href], button, select, summary, .scroll, .chart svg')];"
        "return window.controls.filter((e) => e.checkVisibility()).length"
    )
    assert wanted > 50
    ActionChains(page).send_keys(*[Keys.TAB] * (wanted + 5)).perform()
    missed = (
        "return window.controls.filter((e) => e.checkVisibility() && !window.reached.has(e)).map((e) => e.outerHTML)"
    )
    assert page.execute_script(missed) == []


def test_arrow_keys_tell_what_hovering_tells(page: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    page.execute_script("document.querySelector('#chart-spending svg').focus()")
    ActionChains(page).send_keys(*[Keys.ARROW_UP, Keys.ARROW_RIGHT] * 4).perform()
    told = "#chart-spending [aria-label=tip]"
    wait(lambda: any("epsilon" in tip.text for tip in all_of(page, told)))
    ActionChains(page).send_keys(Keys.TAB).perform()
    wait(lambda: not any("epsilon" in tip.text for tip in all_of(page, told)))


def test_a_series_can_be_hidden_and_shown_again(page: Any) -> None:
    count = f"return document.querySelectorAll('{DOTS}').length"
    shown = page.execute_script(count)
    button = next(button for button in all_of(page, "#legend button") if button.text == "AUTO-S")
    page.execute_script("arguments[0].click()", button)
    assert page.execute_script(count) == shown - 2
    assert "AUTO-S" not in page.execute_script("return document.querySelector('#chart-classes').textContent")
    page.execute_script("arguments[0].click()", button)
    assert page.execute_script(count) == shown
    assert button.get_attribute("aria-pressed") == "true"


def test_hiding_everything_leaves_a_note_not_an_error(page: Any) -> None:
    for button in all_of(page, "#legend button"):
        page.execute_script("arguments[0].click()", button)
    assert "Nothing to show" in page.execute_script("return document.querySelector('#chart-accuracy').textContent")


def test_another_budget_and_another_model_can_be_chosen(page: Any) -> None:
    from selenium.webdriver.support.ui import Select

    budget = all_of(page, "#spending-budget button")[0]
    page.execute_script("arguments[0].click()", budget)
    assert "budget 1" in page.execute_script("return document.querySelector('#chart-spending').textContent")
    text = "return document.querySelector('#chart-attacks').textContent"
    assert "ruled out by the guarantee" in page.execute_script(text)
    Select(all_of(page, "#attacked")[0]).select_by_visible_text("Without privacy, seed 0")
    assert "ruled out" not in page.execute_script(text)


# -- colours, paper, phone -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_in_both_schemes(page: Any, scheme: str) -> None:
    media(page, scheme=scheme)
    dark = int(background(page).strip("rgb()").split(",")[0]) < 60
    assert dark == (scheme == "dark")
    page.execute_script("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    assert page.execute_script(CONTRAST) == []


def test_the_reader_may_choose_the_colours(page: Any) -> None:
    button = all_of(page, "#theme")[0]
    seen = []
    for _ in range(3):
        page.execute_script("arguments[0].click()", button)
        seen.append((button.text, background(page)))
    assert [name for name, _ in seen] == ["Light", "Dark", "Auto"]
    assert seen[0][1] == seen[2][1] != seen[1][1]


def test_print_is_light_whole_and_without_controls(page: Any) -> None:
    page.execute_script("document.documentElement.dataset.theme = 'dark'")
    media(page, scheme="dark", kind="print")
    assert background(page) == "rgb(255, 255, 255)"
    assert page.execute_script(CONTRAST) == []
    assert not all_of(page, "#theme")[0].is_displayed()
    media(page)
    pdf = base64.b64decode(page.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert pdf.startswith(b"%PDF")
    page.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert page.execute_script("return document.querySelectorAll('#statement details:not([open])').length") == 0
    page.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert page.execute_script("return document.querySelectorAll('#statement details[open]').length") == 0


@pytest.mark.parametrize("width", [320, 390])
def test_it_fits_a_phone(page: Any, width: int) -> None:
    emulate(page, width, mobile=True)
    wait(lambda: page.execute_script("return document.querySelector('#chart-accuracy svg').clientWidth") <= width)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    for chart in all_of(page, ".chart svg"):
        assert chart.size["width"] <= width
    assert page.execute_script(CONTRAST) == []


# -- for everybody ---------------------------------------------------------------------------------------------------


def test_everything_has_a_name_and_an_order(page: Any) -> None:
    names = page.execute_script(
        "return [...document.querySelectorAll('button, select, a[href], [role=region], [role=group], nav')]"
        ".map((e) => e.ariaLabel || e.labels?.[0]?.textContent || e.textContent.trim())"
    )
    assert all(names)
    levels = page.execute_script("return [...document.querySelectorAll('h1, h2, h3')].map((h) => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.execute_script("return document.documentElement.lang") == "en"
    assert page.title
    theme = all_of(page, "#theme")[0]
    assert theme.text.lower() in theme.get_attribute("aria-label").lower(), "who speaks to it says what is seen"
    identities = page.execute_script("return [...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(identities) == len(set(identities))
