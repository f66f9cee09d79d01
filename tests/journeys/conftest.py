"""What a new user has: a table of real people, and a browser to look at the page with."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.browser import installed, opened

from reticent.data.loading.places import data_folder

NAMES = (
    "age,workclass,fnlwgt,education,education_num,marital_status,occupation,relationship,race,sex,"
    "capital_gain,capital_loss,hours_per_week,native_country,income"
)
Look = Callable[[Path], str]


@pytest.fixture(scope="session")
def adult(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.csv and test.csv: 8,000 and 2,000 people of the Adult data, as an export would hold them."""
    source, place = data_folder() / "adult", tmp_path_factory.mktemp("adult")
    if not (source / "adult.data.gz").exists():
        pytest.skip("the Adult data are not here: `reticent data get adult`, or set RETICENT_DATA")
    for part, file, rows in (("train", "adult.data.gz", 8000), ("test", "adult.test.gz", 2000)):
        with gzip.open(source / file, "rt") as found:
            lines = [line.strip().rstrip(".").replace(", ", ",") for line in found if line[:1].isdigit()]
        (place / f"{part}.csv").write_text("\n".join([NAMES, *lines[:rows]]) + "\n")
    return place


@pytest.fixture(scope="session")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if installed() is None:
        yield None
        return
    with opened(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def look(_browser: Any) -> Look:
    """Open a page as its reader would: nothing is complained of, no box is empty; its text."""

    def look(page: Path) -> str:
        if _browser is None:
            pytest.skip("no browser: install Debian's chromium and chromium-driver")
        _browser.get(page.as_uri())
        _browser.find_element("css selector", "h1")
        complaints = [line["message"] for line in _browser.get_log("browser")]
        assert not complaints
        empty = _browser.execute_script(
            "return [...document.querySelectorAll('section')].filter((one) => one.checkVisibility() && "
            "!one.innerText.trim()).map((one) => one.id)"
        )
        assert not empty
        return str(_browser.find_element("css selector", "body").text)

    return look
