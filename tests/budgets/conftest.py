"""A ledger in an SQLite file, and one in a PostgreSQL that is started here, on loopback, in a folder of its own."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def binary(name: str) -> str | None:
    """A program of PostgreSQL, on the path or where Debian keeps it."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    return shutil.which(name) or (str(places[0]) if places else None)


def other_user() -> dict[str, object]:
    """PostgreSQL refuses to run as root: whom to run it as instead."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    pytest.skip("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a real PostgreSQL that lives as long as these tests."""
    initdb, server = binary("initdb"), binary("postgres")
    if initdb is None or server is None:
        pytest.skip(
            "no PostgreSQL here: neither on the path nor in /usr/lib/postgresql (Debian: apt install postgresql)"
        )
    pytest.importorskip("psycopg", reason="PostgreSQL needs its driver: pip install 'reticent[postgres]'")
    user, folder, password = other_user(), Path(tempfile.mkdtemp(prefix="reticent-pg-")), secrets.token_hex()
    try:
        secret = folder / "password"
        secret.write_text(password)
        if user:
            for path in (folder, secret):
                os.chown(path, int(str(user["user"])), int(str(user["group"])))
        options = ["--no-sync", "--auth=scram-sha-256", f"--pwfile={secret}", "--username=reticent", "--encoding=UTF8"]
        quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, **user}
        subprocess.run([initdb, "-D", folder / "data", *options], check=True, **quiet)  # type: ignore[call-overload]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        settings = [f"port={port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={folder}", "fsync=off"]
        flags = [word for setting in settings for word in ("-c", setting)]
        log = (folder / "log").open("wb")
        running = subprocess.Popen(  # type: ignore[call-overload]
            [server, "-D", folder / "data", *flags], stderr=log, **quiet
        )
        try:
            url = f"postgresql://reticent:{password}@127.0.0.1:{port}/postgres"
            wait_for(url, running, folder / "log")
            yield url
        finally:
            running.terminate()
            running.wait(60)
            log.close()
    finally:
        shutil.rmtree(folder)


def wait_for(url: str, running: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            assert running.poll() is None, log.read_text()
            time.sleep(0.1)


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.sqlite")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> str:
    """Where a ledger is kept: each test runs on both databases."""
    return str(request.getfixturevalue(request.param))
