"""Every reader of a file that others may have written or that may be damaged, with a whole file for each."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import torch
from PIL import Image

import reticent as rt
from reticent import checkpoint
from reticent.accounting.ledger import read_ledger
from reticent.attacks.shadows import _store, _stored
from reticent.budgets.reserving import read_note
from reticent.certificate import read_card
from reticent.data.fetch.clients import unpack_deb
from reticent.data.loading.archives import read_members
from reticent.data.loading.arrow import ArrowExamples, arrow
from reticent.data.loading.npz import read_npz
from reticent.data.loading.opening import Declaration, open_path, propose_for, read_stored
from reticent.data.loading.own import describe
from reticent.data.loading.pickles import unpickle_arrays
from reticent.data.loading.stored import FileLayout, _read
from reticent.data.sets import adult, cifar, mnist
from reticent.data.tables.schema import read_schema
from reticent.experiments.compare import read_comparison
from reticent.experiments.job import Job, claim
from reticent.experiments.recipe import Recipe, read_recipe
from reticent.experiments.standing import read_reasons
from reticent.experiments.stored import kept_recipe
from reticent.experiments.tables import read_tables
from reticent.experiments.training import train
from reticent.learning import LearningCurve
from reticent.report.entries import read_attack_answers, read_audits
from reticent.results import read_record, read_result, read_results, to_line
from soak.fuzzing import Reader

CSV = b"name,age,ill\nAnn,50,no\nBob,20,yes\n" + b"".join(
    b"P%d,%d,%s\n" % (n, n, (b"no", b"yes")[n % 2]) for n in range(9)
)
SCHEMA = b'label = "ill"\nclasses = ["no", "yes"]\n[columns]\nname = { skip = true }\nage = { low = 0, high = 100 }\n'
RECIPE = b'data = "digits"\nmethod = "dpsur"\nepsilon = 3.0\nepochs = 2\n[options]\ncap = 3\n'
COMPARISON = (
    b'data = "digits"\nmethods = ["auto_s"]\nepsilons = [1, 3]\nseeds = 2\n[variant.mine]\nmethod = "dpsgd"\nlr = 2.0\n'
)
TABLE = (
    b'title = "T"\n[table.1]\ntitle = "A"\nshared = { data = "digits", method = "dpsgd" }\n'
    b'[[table.1.row]]\nname = "a"\nepsilon = [1, 3]\nprinted = [90.5, 95]\n'
)
REASONS = b'[[reason]]\npaper = "dpsur"\ntable = "table 2"\ncells = "*"\nwhy = "because"\n'
OWN = b'train = "people.csv"\nschema = "schema.toml"\n'


def made_run(folder: Path) -> Path:
    """A finished run, with all that a run leaves."""
    run = folder / "run"
    train(Recipe(data="digits", epsilon=3.0, epochs=1, seed=0, curve=4), run)
    return run


def readers(folder: Path) -> list[Reader]:
    """All of them; files lie in the folder, those of runs in one inside."""
    run = made_run(folder)
    for name, content in (("people.csv", CSV), ("schema.toml", SCHEMA)):
        (folder / name).write_bytes(content)
    return [*_of_runs(run), *_of_settings(), *_of_data(folder)]


def _of_runs(run: Path) -> list[Reader]:
    def of(name: str, file: str, read: Callable[[Path], object], *more: bytes) -> Reader:
        return Reader(name, ((run / file).read_bytes(), *more), read, f"run/{file}")

    result = read_result(run)
    (run / "results.jsonl").write_text(to_line(result))
    (run / "record.json").write_bytes((run / "result.json").read_bytes())
    (run / "dataset.json").write_text(json.dumps({"dataset": "a", "run": "0"}))
    job = Job(name="run", label="dpsgd", recipe=Recipe(data="digits", epsilon=3.0, seed=0))
    shutil.copy(run / "record.json", run / "kept.json")
    claim(job, run / "job")
    shutil.copy(run / "job" / "job.json", run / "job.json")
    (run / "private" / "attack").mkdir(exist_ok=True)
    attack = {
        "sentence": "a",
        "attacks": [{"attack": "loss", "auc": 0.5, "members": 3, "outsiders": 3, "fpr": [0, 1], "tpr": [0, 1]}],
    }
    (run / "attack.json").write_text(json.dumps(attack))
    (run / "audit.json").write_text(
        json.dumps({"verdict": "consistent", "lower": 0.1, "upper": 3.0, "confidence": 0.9})
    )
    _store(run, 0, np.ones((3, 2)))
    curve = LearningCurve((torch.zeros(1, 64), torch.zeros(1, dtype=torch.long)), run)
    return [
        of("ledger", "ledger.jsonl", read_ledger),
        of("card", "card.json", lambda path: read_card(path.parent)),
        of("weights", "model.safetensors", lambda path: rt.load(path.parent)),
        of("checkpoint", "private/checkpoint.safetensors", checkpoint.read),
        of("result", "result.json", lambda path: read_result(path.parent)),
        of("record", "record.json", lambda path: read_record(path.parent)),
        of("results", "results.jsonl", read_results),
        of("recipe", "recipe.json", lambda path: kept_recipe(path.parent)),
        of("job", "job.json", lambda path: claim(job, path.parent)),
        of("learning", "learning.json", lambda _: curve.told()),
        of("dataset", "dataset.json", lambda path: read_note(path.parent)),
        of("attack", "attack.json", read_attack_answers),
        of("audit", "audit.json", read_audits),
        of("shadow", "shadow-000.safetensors", lambda path: _stored(path.parent, 0)),
        of("schema of a run", "schema.json", lambda path: read_stored(path.parent))
        if (run / "schema.json").exists()
        else Reader(
            "schema of a run",
            (b'{"kind": "arrays", "classes": ["a", "b"]}',),
            lambda path: read_stored(path.parent),
            "schema.json",
        ),
        of("certificate", "card.json", lambda path: rt.verify(path.parent)),
    ]


def _of_settings() -> list[Reader]:
    return [
        Reader("recipe TOML", (RECIPE,), lambda path: read_recipe(path, {}).filled(), "recipe.toml"),
        Reader("comparison TOML", (COMPARISON,), lambda path: read_comparison(path, {}).jobs(), "compare.toml"),
        Reader("table TOML", (TABLE,), lambda path: read_tables(str(path)), "table.toml"),
        Reader("reasons TOML", (REASONS,), read_reasons, "reasons.toml"),
        Reader("schema TOML", (SCHEMA,), read_schema, "other.toml"),
        Reader("description TOML", (OWN,), describe, "own.toml"),
    ]


def _bytes_of(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _tar(file: io.BytesIO, mode: str) -> None:
    with tarfile.open(fileobj=file, mode=mode) as archive:  # type: ignore[call-overload]
        member = tarfile.TarInfo("member")
        member.size = 300
        archive.addfile(member, io.BytesIO(bytes(300)))


def _zip(file: io.BytesIO) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("member", bytes(300))


COLUMNS = {"name": [None, *"bcd"], "age": [5.0, 6.0, 7.0, 8.0], "ill": ["no", "yes", "no", "no"]}


def _ipc(file: io.BytesIO, more: dict[str, object]) -> None:
    rows = pa.table({**COLUMNS, **more})
    with pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)


def _parquet(file: io.BytesIO) -> None:
    parquet.write_table(pa.table(COLUMNS), file)


def _rows(examples: ArrowExamples) -> object:
    return examples.take(np.arange(len(examples)))


def _deb(body: bytes) -> bytes:
    return b"!<arch>\n" + b"data.tar.xz/    " + b" " * 32 + b"%-10d" % len(body) + b"`\n" + body


def _of_data(folder: Path) -> list[Reader]:
    declared = Declaration(schema=str(folder / "schema.toml"))
    x, y = np.ones((4, 3), np.float32), np.array([0, 1, 0, 1])
    npz = _bytes_of(lambda file: np.savez(file, x=x, y=y, classes=np.array(["a", "b"])))
    packed = _bytes_of(lambda file: np.savez_compressed(file, x=x, y=y))
    batch = pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [1, 2]}, 2)
    images = [_bytes_of(lambda file, kind=kind: Image.new("L", (6, 6), 9).save(file, kind)) for kind in ("PNG", "BMP")]
    (folder / "images" / "a").mkdir(parents=True, exist_ok=True)
    lists = {"a": pa.array([[1.0, 2.0], None, [3.0, 4.0]] * 2, pa.list_(pa.float32(), 2))[:4], "y": [0, 1, None, 1]}
    idx = bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9])
    people = (
        b"39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "
        b"United-States, <=50K\n"
    )

    def stored(read: Callable[[Path], object]) -> Callable[[Path], object]:
        """As the reader of a dataset is called: whatever it raises is told of its files."""
        return lambda path: _read(FileLayout((path.name,), lambda _: read(path)), path.parent, "it")  # type: ignore[arg-type,return-value]

    return [
        Reader("CSV", (CSV,), lambda path: open_path(str(path), declared), "a.csv"),
        Reader("CSV proposal", (CSV,), lambda path: propose_for(str(path)), "b.csv"),
        Reader("CSV gz", (gzip.compress(CSV),), lambda path: open_path(str(path), declared), "c.csv.gz"),
        Reader("npz", (npz, packed), read_npz, "a.npz"),
        Reader("npy", (_bytes_of(lambda file: np.save(file, x)),), read_npz, "a.npy"),
        Reader("own npz", (npz,), lambda path: open_path(str(path), Declaration(accept=True)), "b.npz"),
        Reader("images", tuple(images), lambda path: propose_for(str(path.parents[1])), "images/a/0.png"),
        Reader(
            "arrow",
            (_bytes_of(lambda f: _ipc(f, lists)),),
            lambda path: _rows(arrow(path, inputs="a", label="y")),
            "a.arrow",
        ),
        Reader("parquet", (_bytes_of(_parquet),), lambda path: open_path(str(path), declared), "a.parquet"),
        Reader(
            "feather", (_bytes_of(lambda f: _ipc(f, {})),), lambda path: open_path(str(path), declared), "a.feather"
        ),
        Reader("pickle", (batch,), lambda path: unpickle_arrays(path.read_bytes()), "batch"),
        Reader("CIFAR", (batch,), stored(lambda path: cifar.decode_python(path.read_bytes(), b"labels")), "batch_1"),
        Reader(
            "IDX",
            (gzip.compress(idx),),
            stored(lambda path: mnist.decode_idx(zlib.decompress(path.read_bytes(), 31))),
            "i.gz",
        ),
        Reader("adult", (people,), stored(lambda path: adult.encode_adult(path.read_text())), "adult.data"),
        Reader("zip", (_bytes_of(_zip),), lambda path: read_members(path, ["member"]), "a.zip"),
        Reader("tar", (_bytes_of(lambda f: _tar(f, "w")),), lambda path: read_members(path, ["member"]), "a.tar"),
        Reader("tar gz", (_bytes_of(lambda f: _tar(f, "w:gz")),), lambda path: read_members(path, ["member"]), "a.tgz"),
        Reader("tar xz", (_bytes_of(lambda f: _tar(f, "w:xz")),), lambda path: read_members(path, ["member"]), "a.txz"),
        Reader("deb", (_deb(_bytes_of(lambda f: _tar(f, "w:xz"))),), unpack_deb, "a.deb"),
    ]
