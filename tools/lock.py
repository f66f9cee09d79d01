"""Write requirements.lock: the versions of constraints.txt with the SHA-256 of every file that an index has of them.

`python -m tools.lock INDEX...` reads simple indexes (a URL or a folder), for what is not locked yet: the files of a
version do not change. torch is left out: it comes as a build for the processor on some machines and from the registry
on others, and is pinned by its version alone.
"""

from __future__ import annotations

import re
import sys
import urllib.request
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINNED, LOCK = ROOT / "constraints.txt", ROOT / "requirements.lock"
WITHOUT_HASH = ("torch",)
KNOWN = re.compile(r"^(\S+==\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)
LINK = re.compile(r'href="[^"#]*?([^"#/]+)#sha256=([0-9a-f]{64})"')
HEAD = """\
# Written by `python -m tools.lock INDEX...`; every file is checked before it is installed (`make verified`):
#   pip install --require-hashes --no-deps --requirement requirements.lock
# torch is not here: it is a local build on some machines. constraints.txt pins its version.
"""


def pins(text: str) -> dict[str, str]:
    """The version of each package, by its normal name.

    >>> pins("# why\\nJinja2==3.1.6\\ntyping_extensions==4.1\\n")
    {'jinja2': '3.1.6', 'typing-extensions': '4.1'}
    """
    lines = (line.split("#")[0].split(";")[0].strip() for line in text.splitlines())
    return {normal(name): version for name, _, version in (line.partition("==") for line in lines) if version}


def normal(name: str) -> str:
    """The name of a package as an index has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def hashes(page: str, version: str) -> list[str]:
    """The hashes of all files of one version on the page of a package.

    >>> hashes(f'<a href="../a/it-1.0-py3-none-any.whl#sha256={"0" * 64}">', "1.0") == ["0" * 64]
    True
    """
    told = re.compile(rf"-{re.escape(version)}(?:-|\.tar|\.zip)")
    return sorted({found for file, found in LINK.findall(page) if told.search(file)})


def read_page(index: str, name: str) -> str:
    """The page of a package in an index; nothing where there is none."""
    place = Path(index) / name / "index.html"
    if place.exists():
        return place.read_text()
    if "://" not in index:
        return ""
    with urllib.request.urlopen(f"{index.rstrip('/')}/{name}/") as answer:
        return str(answer.read().decode())


def known(lock: str) -> dict[str, list[str]]:
    """The hashes that a lock has, by name and version.

    >>> known("# why\\na==1 \\\\\\n    --hash=sha256:" + "0" * 64 + "\\n") == {"a==1": ["0" * 64]}
    True
    """
    return {what: re.findall("[0-9a-f]{64}", lines) for what, lines in KNOWN.findall(lock)}


def locked(pinned: dict[str, str], indexes: Iterable[str], before: str = "") -> str:
    """The lines of the lock, with the hashes of the one before; a package of which no index has a hash is told."""
    lines, missing, kept = [], [], known(before)
    for name, version in sorted(pinned.items()):
        if name in WITHOUT_HASH:
            continue
        found = kept.get(f"{name}=={version}") or sorted(
            {one for index in indexes for one in hashes(read_page(index, name), version)}
        )
        if not found:
            missing.append(f"{name}=={version}")
        lines.append(" \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{one}" for one in found)]))
    if missing:
        sys.exit(f"no index has {', '.join(missing)}: give one that has, after those that you gave")
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    earlier = LOCK.read_text() if LOCK.exists() else ""
    LOCK.write_text(locked(pins(PINNED.read_text()), sys.argv[1:], earlier))
