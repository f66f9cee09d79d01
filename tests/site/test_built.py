"""The site as `make docs` has built it: every page in a browser, every link, every public name."""

from __future__ import annotations

import functools
import http.server
import json
import threading
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from tools.browser import emulate, installed, opened, prefer
from tools.site import notebooks, reference

SITE = Path(__file__).parents[2] / "build" / "site"
PAGES = sorted(SITE.rglob("*.html"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGES, reason="the site is not built: make docs"),
]


class Read(HTMLParser):
    """What a page links to and loads, and the places in it that can be linked to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.places: set[str] = {""}
        self.links: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places |= {value for name in ("id", "name") if (value := given.get(name))}
        self.links |= {value for name in ("href", "src") if (value := given.get(name))}


@functools.cache
def read(page: Path) -> Read:
    return Read(page)


def broken(page: Path) -> Iterator[str]:
    """Links within the site that lead nowhere; those to elsewhere are not followed."""
    for link in read(page).links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        target = target / "index.html" if target.is_dir() else target
        if not target.exists() or (target.suffix == ".html" and unquote(parts.fragment) not in read(target).places):
            yield link


def test_no_link_is_broken() -> None:
    found = {str(page.relative_to(SITE)): list(broken(page)) for page in PAGES if page.name != "404.html"}
    assert {page: links for page, links in found.items() if links} == {}


def test_nothing_is_loaded_from_elsewhere() -> None:
    for page in PAGES:
        text = page.read_text()
        assert 'src="http' not in text, page
        assert 'rel="stylesheet" href="http' not in text, page


def test_every_public_name_is_in_the_reference() -> None:
    missing = []
    for name in reference.names():
        page = SITE / "reference" / f"{reference.room(name.rpartition('.')[0])}.html"
        if name not in read(page).places:
            missing.append(name)
    assert missing == []


def test_the_notebooks_are_there_with_what_they_print() -> None:
    for page in notebooks.PAGES:
        book = json.loads((SITE / notebooks.place(page)).read_text())
        code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
        assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
        assert any(cell["outputs"] for cell in code)


class Served(http.server.SimpleHTTPRequestHandler):
    """The site; what is searched is sent whole once and then empty, since every page reads it, for seconds."""

    searched = 0

    def do_GET(self) -> None:
        if not self.path.endswith("/search_index.json"):
            return super().do_GET()
        index = json.loads((SITE / "search" / "search_index.json").read_text())
        index["docs"] = [] if Served.searched else index["docs"]
        Served.searched += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(index).encode())
        return None

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Served, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


SHADE = """
const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).map(Number);
return (r + g + b) / 3;
"""


def becomes(browser: Any, scheme: str, seconds: float = 60.0) -> bool:
    """Whether the page takes the colours that its reader prefers; it hears of a change, so this is not at once."""
    end = time.monotonic() + seconds
    while (browser.execute_script(SHADE) < 100) != (scheme == "dark"):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.skipif(installed() is None, reason="no browser: install Debian's chromium and chromium-driver")
def test_every_page_opens_without_complaint_light_at_a_desk_and_dark_on_a_phone(address: str, tmp_path: Path) -> None:
    wrong: dict[str, list[str]] = {}
    with opened(tmp_path) as browser:
        for page in PAGES:
            name = page.relative_to(SITE).as_posix()
            emulate(browser, 1280)
            browser.get(address + name)
            found = []
            for width, scheme in ((1280, "light"), (390, "dark")):
                emulate(browser, width, mobile=width == 390)
                prefer(browser, scheme)
                found += [] if becomes(browser, scheme) else [f"not {scheme}"]
                wide = browser.execute_script("return document.documentElement.scrollWidth")
                found += [f"{wide} wide on {width}"] if wide > width else []
            found += [entry["message"] for entry in browser.get_log("browser")]
            if found:
                wrong[name] = found
        asked = {url for entry in browser.get_log("performance") if (url := requested(entry))}
    assert wrong == {}
    assert [url for url in asked if not url.startswith((address, "data:", "chrome", "about:", "blob:"))] == []


def requested(entry: dict[str, str]) -> str | None:
    message = json.loads(entry["message"])["message"]
    if message["method"] != "Network.requestWillBeSent":
        return None
    return str(message["params"]["request"]["url"])
