"""The lock: a hash for every pinned package but torch, or a word on what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.lock import LOCK, PINNED, WITHOUT_HASH, hashes, known, locked, pins

ONE, TWO = "1" * 64, "2" * 64


def test_every_constraint_is_read() -> None:
    lines = [line for line in PINNED.read_text().splitlines() if line and not line.startswith("#")]
    assert len(pins(PINNED.read_text())) == len(lines)
    assert "torch" in pins(PINNED.read_text())


def test_all_files_of_the_pinned_version_and_no_others_are_locked(tmp_path: Path) -> None:
    (tmp_path / "some-thing").mkdir()
    files = {
        "some_thing-1.0-cp311-cp311-manylinux_2_28_x86_64.whl": ONE,
        "some_thing-1.0.tar.gz": TWO,
        "some_thing-1.0.1-py3-none-any.whl": "3" * 64,
    }
    links = "".join(f'<a href="../../files/{name}#sha256={found}">{name}</a>' for name, found in files.items())
    (tmp_path / "some-thing" / "index.html").write_text(links)
    assert hashes(links, "1.0") == [ONE, TWO]
    found = locked({"some-thing": "1.0", "torch": "2.0"}, [str(tmp_path)])
    assert f"some-thing==1.0 \\\n    --hash=sha256:{ONE} \\\n    --hash=sha256:{TWO}\n" in found
    assert "torch==" not in found, "a local build has a hash of its own"
    with pytest.raises(SystemExit, match="no index has other==3"):
        locked({"other": "3"}, [str(tmp_path)])


def test_what_is_locked_already_is_not_asked_for_again() -> None:
    before = locked({"a": "1"}, [], f"a==1 \\\n    --hash=sha256:{ONE}\n")
    assert known(before) == {"a==1": [ONE]}
    with pytest.raises(SystemExit, match="no index has a==2"):
        locked({"a": "2"}, [], before)


def test_the_lock_is_of_what_is_pinned() -> None:
    pinned = {f"{name}=={version}" for name, version in pins(PINNED.read_text()).items() if name not in WITHOUT_HASH}
    assert known(LOCK.read_text()).keys() == pinned, "constraints.txt has changed: make lock INDEX=URL"
    assert "://" not in LOCK.read_text()
