"""The user's own data: tables by a public schema, images, arrays on disk of any size, and their description file."""

import subprocess
import sys
import tomllib

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from reticent import data
from reticent.data.loading.maps import map_array
from reticent.data.tables.encoding import Number
from reticent.data.tables.schema import Schema
from reticent.errors import DataError

SCHEMA = """
label = "ill"
classes = ["no", "yes"]
[columns.age]
low = 0
high = 100
[columns.ward]
values = ["north", "south"]
[columns.id]
skip = true
"""


@pytest.fixture
def people(tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA)

    def write(text, name="people.csv"):
        (tmp_path / name).write_text(text)
        return data.table(tmp_path / name, tmp_path / "schema.toml")

    return write


# --- tables --------------------------------------------------------------------------------------------------------


def test_a_table_in_any_order_of_columns(people):
    x, y = people("ward,id,ill,age\nsouth,7,yes,25\nnorth,8,no,250\n")
    assert x.tolist() == [[0.25, 0.0, 1.0], [1.0, 1.0, 0.0]]  # 250 is clamped to the public range
    assert y.tolist() == [1, 0]


def test_encoding_never_depends_on_other_rows(people):
    """The scale comes from the schema: a new record changes nothing about the others."""
    alone = people("age,ward,id,ill\n50,north,1,no\n")
    with_others = people("age,ward,id,ill\n50,north,1,no\n99999,south,2,yes\n-5,south,3,no\n", "more.csv")
    assert torch.equal(alone.x[0], with_others.x[0])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("age,ward,id,ill\n50,east,1,no\n", r"a cell of column 'ward' is not one of its values"),
        ("age,ward,id,ill\n50,north,1,no\nold,north,2,no\n", r"a cell of column 'age' is not a number"),
        ("age,ward,id,ill\nnan,north,2,no\n", r"a cell of column 'age' is not a number"),
        ("age,ward,id,ill\n,north,2,no\n", r"a cell of column 'age' is missing: declare fill or indicator"),
        ("age,ward,id,ill\n50,north,1,maybe\n", r"a label in column 'ill'.*no, yes"),
        ("age,ward,id,ill\n50,north,1\n", r"a row has 3 cells, but the header has 4"),
        ("age,ward,id,ill,shoe\n1,north,1,no,3", r"not in the schema: \['shoe'\]"),
        ("age,ward,id,ill\n", r"has a header but no rows"),
        ("", r"is empty"),
        ("age,id,ill\n1,1,no\n", r"not in the table: \['ward'\]"),
    ],
)
def test_cells_outside_the_schema_are_named(text, said, people):
    with pytest.raises(DataError, match=said) as told:
        people(text)
    for private in ("'east'", "'old'", "'maybe'", "line 2"):  # errors are kept in files that others may see
        assert private not in str(told.value)


@pytest.mark.parametrize(
    "text",
    [
        'label = "y"',
        'label="y"\nclasses=["a", "b"]\n[columns.age]\nlow=5\nhigh=5',
        'label="y"\nclasses=["a", "b"]\n[columns.age]',
        'label="y"\nclasses=["a"]\n[columns.age]\nlow=0\nhigh=5',
        "not toml",
    ],
)
def test_schemas_that_say_too_little(text, tmp_path):
    (tmp_path / "schema.toml").write_text(text)
    with pytest.raises(DataError, match=r"schema.toml"):
        data.table(tmp_path / "none.csv", tmp_path / "schema.toml")


def test_infinite_values_are_clamped():
    assert Number(0, 10).encode("inf") == (1.0,)


def test_the_width_is_known_before_the_data():
    assert Schema.from_json(tomllib.loads(SCHEMA)).width == 3
    assert Schema.from_json({"columns": {}, "label": "y", "classes": ["a", "b"]}).width == 0


# --- arrays, tensors, datasets -------------------------------------------------------------------------------------


def test_examples_from_anything_indexable():
    x, y = np.random.RandomState(0).rand(5, 3), np.arange(5)
    expected = torch.as_tensor(x, dtype=torch.float32)
    for found in (
        data.as_examples(x, y),
        data.as_examples((x, y)),
        data.as_examples(TensorDataset(expected, torch.as_tensor(y))),
        data.as_examples(data.Examples(expected, torch.as_tensor(y))),
    ):
        assert torch.equal(found.x, expected)
        assert found.y.tolist() == [0, 1, 2, 3, 4]


def test_an_iterator_is_not_enough():
    with pytest.raises(DataError, match="map-style"):
        data.as_examples(iter([1, 2]))


# --- arrays on disk ------------------------------------------------------------------------------------------------


def anonymous_memory():
    """Bytes of this process that no file stands behind."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))


@pytest.fixture
def huge(tmp_path):
    """An array of 20 GB that takes no room on disk: nearly all of it was never written."""
    rows = 20 * 10**9 // (4 * 1000)
    file = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=(rows, 1000))
    file[rows - 1] = 1.0
    file[7] = 7.0
    del file
    np.save(tmp_path / "y.npy", np.zeros(rows, np.uint8))
    return tmp_path


def test_an_array_larger_than_memory_stays_on_disk(huge):
    before = anonymous_memory()
    examples = data.mapped(huge / "x.npy", huge / "y.npy")
    some = examples.take([7, len(examples) - 1])
    assert some.x[:, 0].tolist() == [7.0, 1.0]
    for start in range(0, 100_000, 10_000):
        examples.take(torch.arange(start, start + 1000) * 40)
    assert anonymous_memory() - before < 200e6


TRAIN = """
import sys, torch
from pathlib import Path

def anonymous():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))

before = anonymous()
import reticent as rt
examples = rt.data.mapped(sys.argv[1] + "/x.npy", sys.argv[1] + "/y.npy")
model = torch.nn.Linear(1000, 10)
trained = rt.fit(model, examples, noise_multiplier=1.0, epochs=5 * 2048 / len(examples), batch_size=2048, lr=0.1)
print(trained.rounds, anonymous() - before)
"""


@pytest.mark.slow
def test_training_on_20_gigabytes_takes_less_than_2_of_memory(huge):
    np.save(huge / "y.npy", np.zeros(5_000_000, np.int64))
    done = subprocess.run([sys.executable, "-c", TRAIN, str(huge)], capture_output=True, text=True, check=True)
    rounds, memory = map(int, done.stdout.split())
    assert rounds == 5
    assert memory < 2e9


def test_mapped_labels_are_counted(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((3, 1), np.float32))
    np.save(tmp_path / "y.npy", np.zeros(2, np.int64))
    with pytest.raises(DataError, match="3 inputs but 2 labels"):
        data.mapped(tmp_path / "x.npy", tmp_path / "y.npy")


def test_a_file_that_cannot_be_mapped(tmp_path):
    (tmp_path / "x.npy").write_bytes(b"something")
    with pytest.raises(DataError, match=r"numpy\.save"):
        map_array(tmp_path / "x.npy")


# --- images --------------------------------------------------------------------------------------------------------


def test_folders_of_images(tmp_path):
    pillow = pytest.importorskip("PIL.Image", reason="image folders need Pillow")
    for name, shade in (("dark", 0), ("light", 255)):
        (tmp_path / name).mkdir()
        for number in range(2):
            pillow.new("RGB", (20, 10), (shade, shade, shade)).save(tmp_path / name / f"{number}.png")
    (tmp_path / "dark" / "notes.txt").write_text("not an image")
    x, y = data.image_folder(tmp_path, size=(8, 6))
    assert x.shape == (4, 3, 8, 6)
    assert (x.mean((1, 2, 3)).tolist(), y.tolist()) == ([0, 0, 1, 1], [0, 0, 1, 1])
    grey = data.image_folder(tmp_path, size=(4, 4), channels=1, classes=["light", "dark"])
    assert (grey.x.shape, grey.y[grey.x[:, 0, 0, 0] == 1].tolist()) == ((4, 1, 4, 4), [0, 0])
    (tmp_path / "dark" / "0.png").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"cannot read .*0\.png"):
        data.image_folder(tmp_path, size=(8, 6))
    with pytest.raises(DataError, match="no folder"):
        data.image_folder(tmp_path, size=(8, 6), classes=["grey"])


def test_images_without_pillow_say_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    with pytest.raises(DataError, match=r"reticent\[images\]"):
        data.image_folder(tmp_path, size=(8, 8))


# --- the description file ------------------------------------------------------------------------------------------


def test_a_described_table_loads_by_its_path(tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "train.csv").write_text("age,ward,id,ill\n50,north,1,no\n60,south,2,yes\n")
    (tmp_path / "own.toml").write_text('name = "ward"\ntrain = "train.csv"\nschema = "schema.toml"\n')
    found = data.load(str(tmp_path / "own.toml"))
    assert (found.name, found.inputs, found.classes, found.test) == ("ward", (3,), 2, None)
    assert "own.toml" in found.note


def test_described_arrays(tmp_path):
    np.save(tmp_path / "x.npy", np.full((4, 1, 8, 8), 255, np.uint8))
    np.save(tmp_path / "y.npy", np.arange(4))
    (tmp_path / "own.toml").write_text('classes = 4\ntrain = ["x.npy", "y.npy"]\ntest = ["x.npy", "y.npy"]\n')
    found = data.load(str(tmp_path / "own.toml"))
    assert (found.name, found.classes, len(found.test)) == ("own", 4, 4)
    assert float(found.train.x.min()) == 1.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("classes = 2", "'train' is missing"),
        ('train = "x"\nclasses = 2', "a table needs 'schema'"),
        ('train = ["x.npy", "y.npy"]', "'classes' must say"),
        ("= 3", "is not valid TOML"),
    ],
)
def test_descriptions_that_say_too_little(text, said, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 1), np.float32))
    np.save(tmp_path / "y.npy", np.zeros(2, np.int64))
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(DataError, match=said):
        data.load(str(tmp_path / "own.toml"))
