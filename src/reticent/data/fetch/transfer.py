"""A download that goes on where it stopped."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from reticent.errors import DataError

Report = Callable[[str, int, int | None], None]  # what, bytes so far, bytes in all if known

SECONDS = 20
_CHUNK = 1 << 18
_NOTHING_LEFT = 416


def download(url: str, path: Path, report: Report) -> None:
    """Fetch a file; what an earlier attempt left in `path`.part is kept and continued."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        _continue(url, part, report)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise DataError(f"{url}: {getattr(error, 'reason', None) or error}") from error
    part.rename(path)


def _continue(url: str, part: Path, report: Report) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != _NOTHING_LEFT:
            raise
        error.close()
        part.unlink()  # longer than the file on the server: it has changed, so begin again
        return _continue(url, part, report)
    with answer:
        resumed = answer.status == http.client.PARTIAL_CONTENT
        have = have if resumed else 0
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else None
        _copy(answer, part, have, lambda done: report(part.stem, done, total))
    if total is not None and part.stat().st_size < total:
        raise ConnectionError(f"broke off after {part.stat().st_size:,} of {total:,} bytes; run again to go on")
    return None


def _copy(answer: http.client.HTTPResponse, part: Path, have: int, report: Callable[[int], None]) -> None:
    with part.open("ab" if have else "wb") as file:
        while chunk := answer.read(_CHUNK):
            file.write(chunk)
            have += len(chunk)
            report(have)
