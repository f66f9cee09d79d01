"""The picture of the page in the README: `python -m tools.picture [FOLDER]` runs the demo and takes it.

With the folder of a demo that was run before, only the picture is taken.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.browser import emulate, opened

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "demo.png"
MOST_BYTES = 200_000


def take(page: Path, picture: Path) -> None:
    """The top of a page, as a reader at a desk sees it."""
    with tempfile.TemporaryDirectory() as profile, opened(Path(profile)) as browser:
        emulate(browser, 1180, height=1000)
        browser.get(page.resolve().as_uri())
        end = time.monotonic() + 60
        while not browser.find_elements("css selector", "#chart-accuracy svg"):
            if time.monotonic() > end:
                sys.exit(f"{page} draws nothing")
            time.sleep(0.1)
        picture.write_bytes(browser.get_screenshot_as_png())
    if picture.stat().st_size > MOST_BYTES:
        sys.exit(f"{picture} has {picture.stat().st_size} bytes, more than {MOST_BYTES}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as empty:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(empty)
        if not (folder / "compared" / "report.html").exists():
            subprocess.run([sys.executable, "-m", "reticent", "demo", "--out", str(folder)], check=True)
        take(folder / "compared" / "report.html", PICTURE)
