"""Files that mean harm, and files that were damaged: named and refused, never run, never loaded, never a crash."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from tests import quick
from torch import nn

from reticent import data
from reticent.data import Dataset, Examples
from reticent.data.loading import archives
from reticent.data.loading.archives import gunzip, read_members
from reticent.data.loading.arrays import read_arrays, write_arrays
from reticent.data.loading.npz import read_npz
from reticent.data.loading.pickles import unpickle_arrays
from reticent.data.loading.png import decode_png
from reticent.data.sets.cifar import decode_python
from reticent.errors import DataError, FileWarning


def named(module: str, name: str) -> bytes:
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


HUGE = struct.pack("<Q", 1 << 32)
HOSTILE = {
    "an array over foreign memory": b"\x80\x02" + named("numpy", "ndarray") + b"(K\x08\x85U\x01OU\x08AAAAAAAAtR.",
    "an array of objects": b"\x80\x02"
    + named("numpy.core.multiarray", "_reconstruct")
    + b"("
    + named("numpy", "ndarray")
    + b"K\x00\x85U\x01btR(K\x01K\x01\x85"
    + named("numpy", "dtype")
    + b"U\x01O\x85R\x89U\x08AAAAAAAAtb.",
    "more memory than there is": b"\x80\x05\x96" + HUGE + b".",
    "a memo of four thousand million": b"\x80\x02]r\xf0\xff\xff\xff.",
    "code": b"\x80\x02" + named("os", "system") + b"U\x04true\x85R.",
    "a name of ours that is called for nothing": b"\x80\x02" + named("numpy", "ndarray") + b"K\x01\x85R.",
    "no pickle": b"{}",
    "nothing": b"",
    "no dictionary": pickle.dumps([1, 2]),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_pickle_is_refused(kind: str) -> None:
    with pytest.raises(DataError):
        unpickle_arrays(HOSTILE[kind])


def test_a_hostile_pickle_does_not_end_the_process() -> None:
    """In a process of its own, with little memory: a crash of the interpreter must not pass for an error."""
    program = (
        "import resource, sys; from reticent.data.loading.pickles import unpickle_arrays\n"
        "from reticent.errors import DataError\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (1 << 31, 1 << 31))\n"
        "for line in sys.stdin:\n"
        "    try: unpickle_arrays(bytes.fromhex(line)); print('opened')\n"
        "    except DataError: print('refused')\n"
    )
    said = quick.run(program, given="\n".join(raw.hex() for raw in HOSTILE.values()) + "\n")
    assert said.returncode == 0, said.stderr
    assert said.stdout.split() == ["refused"] * len(HOSTILE)


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_batch_is_read_and_one_whose_parts_do_not_fit_is_not(protocol: int) -> None:
    x, y = np.arange(2 * 3072, dtype=np.int64).astype(np.uint8).reshape(2, -1), [3, 4]
    images, labels = decode_python(pickle.dumps({b"data": x, b"labels": y}, protocol), b"labels")
    assert np.array_equal(images.reshape(2, -1), x)
    assert labels.tolist() == y
    wrong: list[dict[bytes, object]] = [
        {b"data": x[:, :5], b"labels": y},
        {b"data": x, b"labels": [3]},
        {b"data": x, b"labels": [3, "4"]},
        {b"data": x.astype(np.float64), b"labels": y},
        {b"labels": y},
    ]
    for batch in wrong:
        with pytest.raises(DataError, match="not a CIFAR batch"):
            decode_python(pickle.dumps(batch, protocol), b"labels")


# -- archives ----------------------------------------------------------------------------------------------------------


def make_zip(path: Path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("member", content)


def make_tar(path: Path, content: bytes) -> None:
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("member")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize("make", [make_zip, make_tar], ids=["zip", "tar"])
def test_an_archive_that_would_fill_the_memory_is_refused(make, tmp_path, monkeypatch):
    make(tmp_path / "bomb", bytes(100_000))
    assert len(read_members(tmp_path / "bomb", ["member"])["member"]) == 100_000
    monkeypatch.setattr(archives, "LIMIT", 50_000)
    with pytest.raises(DataError, match="unpacks to more than"):
        read_members(tmp_path / "bomb", ["member"])


def test_gzipped_files_and_arrays_have_the_same_limit(tmp_path, monkeypatch):
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(100_000)))
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(100_000, np.uint8))
    monkeypatch.setattr(archives, "LIMIT", 50_000)
    for read, name in ((gunzip, "a.gz"), (read_npz, "a.npz")):
        with pytest.raises(DataError, match="unpacks to more than"):
            read(tmp_path / name)


@pytest.mark.parametrize("make", [make_zip, make_tar], ids=["zip", "tar"])
def test_an_archive_that_was_copied_by_half_is_named(make, tmp_path):
    path = tmp_path / "half"
    make(path, np.random.default_rng(0).bytes(5000))
    whole = path.read_bytes()
    for end in (0, 1, 10, 100, 1000, len(whole) // 2):
        path.write_bytes(whole[:end])
        with pytest.raises(DataError, match=r"half|does not contain"):
            read_members(path, ["member"])


def test_a_picture_unpacks_to_no_more_than_its_size(tmp_path):
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + bytes(4)

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0))
    whole = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(10_000_000)))
    assert decode_png(whole).shape == (2, 2, 1)


# -- caches ------------------------------------------------------------------------------------------------------------


def test_a_cache_that_was_changed_is_named_and_made_again(tmp_path):
    folder = tmp_path / "decoded"
    for damage in (lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), lambda raw: raw[:90], lambda raw: b""):
        write_arrays(folder, {"x": np.arange(10)}, "it")
        path = folder / "x.npy"
        path.write_bytes(damage(path.read_bytes()))
        with pytest.warns(FileWarning, match="made again"):
            assert read_arrays(folder) is None
        assert not folder.exists()
    write_arrays(folder, {"x": np.arange(10)}, "it")
    (folder / "sums.json").unlink()
    with pytest.warns(FileWarning, match="made again"):
        assert read_arrays(folder) is None


def test_features_of_private_examples_are_for_their_owner_only(tmp_path, monkeypatch):
    names = []
    for cache in ("a", "b"):
        monkeypatch.setenv("RETICENT_CACHE", str(tmp_path / cache))
        torch.manual_seed(0)
        examples = Dataset("own", Examples(torch.ones(3, 4), torch.zeros(3, dtype=torch.long)), None, 2, "")
        first = data.extract(examples, nn.Linear(4, 2)).train.x.clone()
        (folder,) = (tmp_path / cache / "private" / "features").iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
        names.append(folder.name)
        whole = (folder / "x.npy").read_bytes()
        (folder / "x.npy").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        torch.manual_seed(0)
        with pytest.warns(FileWarning, match="made again"):
            assert torch.equal(data.extract(examples, nn.Linear(4, 2)).train.x, first)
    assert names[0] != names[1], "the name of a cache must not tell which examples were here"
