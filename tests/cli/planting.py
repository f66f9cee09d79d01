"""Every kind of input with canaries in it: a name, a number and a picture that nothing released may hold."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import torch
from PIL import Image
from PIL.PngImagePlugin import PngInfo

CANARY = "Xanthippe-4711"
SECRET = 0.7342518926
"""A number of the one private record that is looked for."""
PICTURE = np.random.default_rng(4711).integers(0, 256, (6, 6), np.uint8)
ROWS = 80
SCHEMA = """
label = "ill"
classes = ["no", "yes"]
[columns]
name = { skip = true }
age = { low = 0, high = 1 }
"""

Cells = list[list[object]]
Words = tuple[str, ...]
"""What of the command line says which data."""


def traces() -> dict[str, bytes]:
    """How a canary would look in a file: as words, as digits, as bytes."""
    numbers = {f"{kind}": np.array(SECRET, kind).tobytes() for kind in ("f4", "f8", ">f4", ">f8")}
    digits = {"digits": str(SECRET)[:9].encode(), "rounded": str(np.float32(SECRET))[:9].encode()}
    pixels = {"pixels": PICTURE.tobytes(), "floats": (torch.from_numpy(PICTURE).float() / 255).numpy().tobytes()}
    return {"name": CANARY.encode(), "name in UTF-16": CANARY.encode("utf-16-le"), **numbers, **digits, **pixels}


def found_in(content: bytes) -> list[str]:
    """Which canaries are there."""
    return [name for name, trace in traces().items() if trace in content]


def cells(*, age: object = SECRET, label: object = "yes") -> Cells:
    """A table: the canary first, and many who are not looked for."""
    others: Cells = [[f"person {row}", (row % 97) / 97, ("no", "yes")[row % 2]] for row in range(ROWS)]
    return [[CANARY, age, label], *others]


def to_csv(path: str, rows: Cells, header: bool = True) -> None:
    with Path(path).open("w", newline="") as file:
        csv.writer(file).writerows([["name", "age", "ill"], *rows] if header else rows)


def table(rows: Cells) -> pa.Table:
    """A table for the formats of Arrow: a column with words in it is one of words."""
    columns = dict(zip(("name", "age", "ill"), zip(*rows, strict=True), strict=True))
    mixed = any(isinstance(cell, str) for cell in columns["age"])
    return pa.table({**columns, "age": [str(cell) for cell in columns["age"]] if mixed else columns["age"]})


def _schema(data: str) -> Words:
    """With a schema, and a few others who are public."""
    Path("schema.toml").write_text(SCHEMA)
    to_csv("others.csv", cells()[30:])
    return "--data", data, "--set", "schema=schema.toml", "--set", "test_data=others.csv"


def _csv(**changed: object) -> Words:
    to_csv("people.csv", cells(**changed))
    return _schema("people.csv")


def _csv_header() -> Words:
    """The first record takes the place of the names of columns."""
    to_csv("people.csv", cells(), header=False)
    return _schema("people.csv")


def _csv_coding() -> Words:
    words = _csv()
    Path("people.csv").write_bytes(Path("people.csv").read_bytes() + b"\xff" + CANARY.encode() + b"\n")
    return words


def _csv_ragged() -> Words:
    words = _csv()
    Path("people.csv").write_text(Path("people.csv").read_text() + f"{CANARY},1,no,{CANARY}\n")
    return words


def _groups(**changed: object) -> Words:
    return (*_csv(**changed), "--set", "groups=name")


def _nobody() -> Words:
    """A row that does not say whose it is."""
    to_csv("people.csv", [*cells(), ["", SECRET, "no"]])
    return (*_schema("people.csv"), "--set", "groups=name")


def _parquet(**changed: object) -> Words:
    parquet.write_table(table(cells(**changed)), "people.parquet")
    return _schema("people.parquet")


def _parquet_damaged() -> Words:
    words = _parquet()
    Path("people.parquet").write_bytes(Path("people.parquet").read_bytes()[:-40] + CANARY.encode())
    return words


def _feather(**changed: object) -> Words:
    feather.write_feather(table(cells(**changed)), "people.feather")
    return _schema("people.feather")


def arrays() -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels."""
    x = np.random.default_rng(0).random((ROWS, 3)).astype(np.float32)
    x[7] = SECRET
    return x, np.arange(ROWS) % 2


def _npz(**changed: object) -> Words:
    x, y = arrays()
    public = {"test_x": x[10:50], "test_y": y[10:50], "classes": np.array(["no", "yes"]), "names": np.array([CANARY])}
    np.savez("own.npz", **({"x": x, "y": y} | public | changed))
    return "--data", "own.npz"


def _npy(x: np.ndarray | None = None, y: np.ndarray | None = None) -> Words:
    inputs, labels = arrays()
    np.save("x.npy", inputs if x is None else x)
    np.save("y.npy", labels if y is None else y)
    np.save("other-x.npy", inputs[10:50])
    np.save("other-y.npy", labels[10:50])
    Path("own.toml").write_text('classes = 2\ntrain = ["x.npy", "y.npy"]\ntest = ["other-x.npy", "other-y.npy"]\n')
    return "--data", "own.toml"


def _images() -> Words:
    told = PngInfo()
    told.add_text("patient", CANARY)
    rng = np.random.default_rng(0)
    for part, number, name in [(part, *named) for part in ("photos", "others") for named in enumerate(("ill", "well"))]:
        place = Path(part, name)
        place.mkdir(parents=True)
        for one in range(ROWS // 4):
            Image.fromarray(rng.integers(60 * number, 120, (6, 6), np.uint8)).save(place / f"{one}.png")
        if part == "photos":
            Image.fromarray(PICTURE).save(place / f"{CANARY}.png", pnginfo=told)
    Path("photos.toml").write_text(
        'train = "photos"\ntest = "others"\nsize = [6, 6]\nchannels = 1\nclasses = ["ill", "well"]\n'
    )
    return "--data", "photos.toml", "--model", "linear"


def _no_image() -> Words:
    words = _images()
    Path("photos", "ill", f"{CANARY}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + CANARY.encode())
    return words


Plant = Callable[[], Words]
WHOLE: dict[str, Plant] = {
    "csv": _csv,
    "groups": _groups,
    "parquet": _parquet,
    "feather": _feather,
    "npz": _npz,
    "npy": _npy,
    "images": _images,
}
"""What can be trained on."""
BAD: dict[str, Plant] = {
    "csv, a cell": lambda: _csv(age=CANARY),
    "csv, a label": lambda: _csv(label=CANARY),
    "csv, the header": _csv_header,
    "csv, the coding": _csv_coding,
    "csv, a long row": _csv_ragged,
    "groups, nobody": _nobody,
    "parquet, a cell": lambda: _parquet(age=CANARY),
    "parquet, a label": lambda: _parquet(label=CANARY),
    "parquet, damaged": _parquet_damaged,
    "feather, a cell": lambda: _feather(age=CANARY),
    "npz, labels": lambda: _npz(y=np.array([CANARY] * ROWS)),
    "npz, inputs": lambda: _npz(x=np.array([[CANARY]] * ROWS)),
    "npz, objects": lambda: _npz(x=np.array([CANARY, {}] * (ROWS // 2), dtype=object)),
    "npy, inputs": lambda: _npy(np.array([[CANARY]] * ROWS)),
    "npy, labels": lambda: _npy(y=np.array([CANARY] * ROWS)),
    "npy, rows": lambda: _npy(x=np.full((3, 3), SECRET)),
    "images, no image": _no_image,
}
"""What is refused, with a canary in the reason."""
