"""Tables as they come: every oddity works as declared or is told in one sentence, and no error tells a cell."""

from __future__ import annotations

import json
import tomllib
import traceback
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import torch

import reticent as rt
from reticent import data
from reticent.data.loading.opening import from_json, propose_for
from reticent.data.tables.encoding import read_column, words_of
from reticent.data.tables.frames import frame_of
from reticent.data.tables.proposing import propose
from reticent.data.tables.schema import Schema
from reticent.data.tables.writing import READ, to_toml
from reticent.data.texts import codes_of
from reticent.errors import DataError

SCHEMA = """
label = "ill"
classes = ["no", "yes"]
missing = ["?"]
[columns.age]
low = 0
high = 100
fill = 40
indicator = true
[columns.ward]
values = ["north", "süd"]
other = true
[columns.smoker]
bool = true
[columns.came]
date = "iso"
low = 2000-01-01
high = 2020-01-01
[columns.id]
skip = true
"""
TEXT = """age,ward,smoker,came,id,ill
50,north,true,2010-01-01,1,yes
?,süd,no,2000-01-01,2,no
,east,1,2030-06-01T12:00,3,no
"""
EXPECTED = [
    [0.5, 0.0, 1.0, 0.0, 0.0, 1.0, 0.50007],
    [0.4, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0],
    [0.4, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0],
]
COLUMNS = {
    "age": [50.0, None, None],
    "ward": ["north", "süd", "east"],
    "smoker": [True, False, True],
    "came": [datetime(2010, 1, 1), datetime(2000, 1, 1), datetime(2030, 6, 1, 12)],
    "id": [1, 2, 3],
    "ill": ["yes", "no", "no"],
}


def schema(text: str = SCHEMA) -> Schema:
    return Schema.from_json(tomllib.loads(text))


def written(tmp_path: Path, text: str, coding: str = "utf-8", name: str = "people.csv") -> Path:
    (tmp_path / name).write_bytes(text.encode(coding))
    return tmp_path / name


def same(found: data.Examples) -> None:
    torch.testing.assert_close(found.x, torch.tensor(EXPECTED), atol=1e-4, rtol=0)
    assert found.y.tolist() == [1, 0, 0]


# --- one table in every form ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coding", "declared"),
    [
        ("utf-8", ""),
        ("utf-8-sig", ""),
        ("utf-16", ""),
        ("latin-1", 'coding = "latin-1"'),
    ],
)
def test_text_in_any_coding(coding: str, declared: str, tmp_path: Path) -> None:
    same(data.table(written(tmp_path, TEXT, coding), schema(declared + SCHEMA)))


def test_other_separators_line_ends_and_a_file_without_a_header(tmp_path: Path) -> None:
    same(data.table(written(tmp_path, TEXT.replace(",", ";")), schema('separator = ";"' + SCHEMA)))
    same(data.table(written(tmp_path, TEXT.replace(",", "\t"), name="people.tsv"), schema()))
    same(data.table(written(tmp_path, TEXT.replace("\n", "\r\n") + "\r\n"), schema()))
    header, _, body = TEXT.partition("\n")
    names = f"names = {header.split(',')}".replace("'", '"')
    same(data.table(written(tmp_path, body), schema(names + SCHEMA)))


def test_frames_give_the_numbers_of_the_file(tmp_path: Path) -> None:
    wide = pd.DataFrame(COLUMNS)
    for frame in (wide, wide.convert_dtypes(), pl.DataFrame(COLUMNS), pa.table(COLUMNS), COLUMNS):
        same(data.table(frame, schema()))
    pyarrow.parquet.write_table(pa.table(COLUMNS), tmp_path / "people.parquet")
    pyarrow.feather.write_feather(pa.table(COLUMNS), tmp_path / "people.arrow")
    for name in ("people.parquet", "people.arrow"):
        same(data.table(tmp_path / name, schema()))


def test_object_categorical_and_float64_columns() -> None:
    odd = pd.DataFrame(COLUMNS)
    odd["age"] = odd["age"].astype(object)
    odd["ward"] = pd.Categorical(odd["ward"])
    odd["came"] = [date(2010, 1, 1), date(2000, 1, 1), date(2030, 6, 1)]
    same(data.table(odd, schema()))


def test_a_whole_number_is_one_value_however_it_is_written() -> None:
    """pandas makes 1.0 of 1 where a cell is missing."""
    coded = Schema.from_json({"label": "y", "classes": ["0", "1"], "columns": {"code": {"values": ["1", "2.0"]}}})
    for cells in (["1", "2"], [1.0, 2.0], [1, 2], ["1.0", "2.00"]):
        assert coded.examples({"code": cells, "y": [0, 1.0]}).x.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_dates_by_a_declared_form() -> None:
    entry = {"date": "%d.%m.%Y", "low": "2000-01-01", "high": "2000-01-11"}
    found = Schema.from_json({"label": "y", "classes": ["a", "b"], "columns": {"day": entry}})
    assert found.apply({"day": ["01.01.2000", "06.01.2000", "01.01.1999"]}).flatten().tolist() == [0.0, 0.5, 0.0]


def test_a_schema_comes_back_from_json() -> None:
    once = schema()
    again = from_json(once.to_json())
    assert isinstance(again, Schema)
    assert (again.columns, again.classes, again.assumes) == (once.columns, once.classes, once.assumes)
    assert "declared" in once.assumes[0]


# --- what is wrong is told, what a cell holds is not ---------------------------------------------------------------

SECRET = "s3cret"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"age,ward,smoker,came,id,ill\n{SECRET},north,no,2010-01-01,1,no\n", "a cell of column 'age' is not a number"),
        (f"age,ward,smoker,came,id,ill\n1,north,{SECRET},2010-01-01,1,no\n", "'smoker' is not true or false"),
        (f"age,ward,smoker,came,id,ill\n1,north,no,{SECRET},1,no\n", "'came' is not a date such as"),
        (f"age,ward,smoker,came,id,ill\n1,north,no,2010-01-01,1,{SECRET}\n", "a label in column 'ill'"),
        ("age,ward,smoker,came,id,ill\n1,north,,2010-01-01,1,no\n", "'smoker' is missing: declare fill or indicator"),
        (f"age,ward,smoker,came,id,ill\n1,{SECRET},no\n", "a row has 3 cells, but the header has 6"),
        ("age,ward,smoker,came,id,ill\n", "has a header but no rows"),
        ("", "is empty"),
        ("age,age,smoker,came,id,ill\n", "names 'age' twice"),
        ("50,north,true,2010-01-01,1,yes\n", "the first line must name the columns"),
        (f'age,ward,smoker,came,id,ill\n"{SECRET},north', "a row has"),
    ],
)
def test_oddities_are_told_in_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=said) as told:
        data.table(written(tmp_path, text), schema())
    assert SECRET not in "".join(traceback.format_exception(told.value))  # sweeps keep the whole of it in error.txt


def test_latin_1_that_is_not_declared(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r'not written in utf-8: declare another coding, such as coding = "latin-1"'):
        data.table(written(tmp_path, TEXT, "latin-1"), schema())


def test_a_list_in_a_cell_is_no_number() -> None:
    with pytest.raises(DataError, match="column 'age'"):
        schema().apply({**COLUMNS, "age": [[1], 2, 3]})


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("values = []", "needs low and high"),
        ('date = "iso"\nlow = 2000-01-01\nhigh = 1990-01-01', "needs low and high"),
        ('low = 0\nhigh = 1\nfill = "much"', "fill must be a number"),
        ('values = ["a"]\nfill = "noisy"', "a choice has no mean"),
        ('values = ["a"]\nfill = "b"', "fill must be one of its values"),
    ],
)
def test_columns_that_are_not_well_declared(entry: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        schema(f'label = "y"\nclasses = ["a", "b"]\n[columns.x]\n{entry}')


def test_a_check_says_where(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT.replace("50", "old").replace("3,no", "3,perhaps"))
    found = [(one.row, one.column, one.says) for one in data.check(path, schema())]
    assert found == [(0, "age", "not a number"), (2, "ill", "not one of the classes")]
    ragged = data.check(written(tmp_path, TEXT + "1,2\n"), schema())
    assert [(one.row, one.says) for one in ragged] == [(3, "2 cells, but the header has 6")]


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match=r"reticent\[tables\]"):
        frame_of(written(tmp_path, "", name="people.parquet"))


@pytest.mark.parametrize("name", ["people.parquet", "people.arrow"])
def test_a_broken_file_is_told(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"cannot read .*{name}"):
        frame_of(written(tmp_path, SECRET, name=name))


# --- proposals -----------------------------------------------------------------------------------------------------

ROWS = 200
PROPOSED = {
    "age": list(range(20, 20 + ROWS)),
    "pay": [1234.5 + row for row in range(ROWS)],
    "left": ["NA" if row % 3 == 0 else str(row) for row in range(ROWS)],
    "ward": ["north", "south"] * 99 + ["moon", "north"],
    "vip": ["yes", "no"] * 100,
    "born": ["1950-05-05", "1987-01-31"] * 100,
    "patient_id": list(range(ROWS)),
    "note": [f"text {row}" for row in range(ROWS)],
    "nothing": [None] * ROWS,
    "ill": ["no", "yes"] * 100,
}


def test_a_proposal_marks_what_was_read() -> None:
    found = propose(PROPOSED)
    assert found.read == {
        "pay": ("low", "high"),
        "left": ("low", "high", "indicator"),
        "ward": ("values",),
        "born": ("low", "high"),
        "ill": ("classes",),
    }
    columns = found.content["columns"]
    assert isinstance(columns, dict)
    assert columns["age"] == {"low": 0, "high": 100}  # by its name
    assert columns["pay"] == {"low": 1200.0, "high": 1500.0}
    assert columns["ward"] == {"values": ["north", "south"], "other": True}  # one moon would point at one patient
    assert columns["vip"] == {"bool": True}
    assert columns["born"] == {"date": "iso", "low": "1950-01-01", "high": "1990-01-01"}
    assert [name for name, entry in columns.items() if entry == {"skip": True}] == ["patient_id", "note", "nothing"]
    assert found.content["missing"] == ["NA"]


def test_a_proposal_as_a_file_reads_back_and_reads_the_table(tmp_path: Path) -> None:
    found = propose(PROPOSED)
    text = to_toml(found)
    marked = [line.split(" =")[0] for line in text.splitlines() if READ in line]
    assert marked == ["classes", "low", "high", "low", "high", "indicator", "values", "low", "high"]
    (tmp_path / "schema.toml").write_text(text)
    declared = data.read_schema(tmp_path / "schema.toml")
    examples = data.table(PROPOSED, declared)
    assert examples.x.shape == (ROWS, declared.width)
    assert bool(((examples.x >= 0) & (examples.x <= 1)).all())
    assert "moon" not in text


def test_a_proposal_for_strange_names_and_values() -> None:
    odd = {'a "b" = [': ['x\\"y', "tab\there"], "c.d": [1, 2], "y": ["]", "ü"]}
    content = tomllib.loads(to_toml(propose(odd)))
    assert list(content["columns"]) == ['a "b" = [', "c.d"]
    assert data.table(odd, Schema.from_json(content)).y.tolist() == [0, 1]


def test_proposals_for_text_files(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT.replace(",", ";"), "latin-1")
    content = propose(path, label="ill").content
    assert (content["coding"], content["separator"], content["classes"]) == ("latin-1", ";", ["no", "yes"])
    assert data.table(path, Schema.from_json(content)).y.tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ({"a": [1, 2], "price": list(np.linspace(0, 1, 2))}, None),
        ({"a": range(300), "y": [f"name {row}" for row in range(300)]}, "no label of a few classes"),
        ({"a": [1, 2], "y": ["x", "x"]}, "no label of a few classes"),
    ],
)
def test_a_label_of_a_few_classes(frame: dict[str, object], said: str | None) -> None:
    if said is None:
        assert propose(frame).content["classes"] == ["0", "1"]  # type: ignore[arg-type]
        return
    with pytest.raises(DataError, match=said):
        propose(frame)  # type: ignore[arg-type]


def test_a_label_that_is_not_there() -> None:
    with pytest.raises(DataError, match="no column 'z' for the label"):
        propose({"a": [1], "y": ["n"]}, label="z")


def test_what_is_not_there_is_told() -> None:
    with pytest.raises(DataError, match="no file or folder"):
        propose_for("nowhere.csv")


def test_a_number_to_predict_has_a_declared_range(tmp_path: Path) -> None:
    schema = Schema.from_json(
        {"label": "price", "target": {"low": 100, "high": 300}, "columns": {"area": {"low": 0, "high": 200}}}
    )
    rows = {"area": [float(n % 200) for n in range(400)], "price": [100.0 + n % 200 for n in range(400)]}
    examples = rt.data.table(rows, schema)
    assert examples.y.dtype == torch.float32
    assert [float(examples.y.min()), float(examples.y.max())] == pytest.approx([0.0, 0.995])
    said: dict[str, Any] = {"epsilon": 8.0, "epochs": 20, "seed": 0, "loss": "mse", "folder": tmp_path}
    done = rt.fit(torch.nn.Linear(1, 1), examples, **said)
    assert done.evaluate(examples)["r2"] > 0.5
    (answer,) = rt.load(tmp_path, torch.nn.Linear(1, 1)).predict({"area": [100]})
    assert 150 < float(answer) < 250
    assert [bad.row for bad in rt.data.check({**rows, "price": ["dear", *rows["price"][1:]]}, schema)] == [0]
    with pytest.raises(DataError, match="a cell of column 'price' is not a number"):
        rt.data.table({**rows, "price": ["dear", *rows["price"][1:]]}, schema)
    for wrong in ({"target": {"low": 3}}, {"target": {"low": 1, "high": 2}, "classes": ["a", "b"]}):
        with pytest.raises(DataError):
            Schema.from_json({"label": "price", "columns": {}, **wrong})


def test_a_column_of_text_is_hashed_word_by_word():
    said = {"label": "y", "classes": ["a", "b"], "columns": {"note": {"text": 64}, "age": {"low": 0, "high": 100}}}
    schema = data.Schema.from_json(said)
    frame = {
        "note": ["Good, good film", "film good", "", None, "other words here"],
        "age": [50] * 5,
        "y": list("ababa"),
    }
    x, _ = data.table(frame, schema)
    assert x.shape == (5, 65)
    assert x[0].equal(x[1]), "presence, in no order"
    torch.testing.assert_close(x[:, :64].norm(dim=1), torch.tensor([8.0, 8.0, 0.0, 0.0, 8.0]))
    assert sorted(x[0, :64].nonzero()[:, 0].tolist()) == sorted(int(code) % 64 for code in codes_of(["good", "film"]))
    again = data.Schema.from_json(json.loads(json.dumps(schema.to_json())))
    assert again.apply({"note": ["film good"], "age": [50]}).equal(x[:1]), "new texts are read alike"
    for wrong in ({"text": 1}, {"text": "yes"}, {"text": 64, "fill": "noisy"}):
        with pytest.raises(DataError, match="text"):
            data.Schema.from_json(said | {"columns": {"note": wrong}})


def test_a_missing_text_has_no_words_and_says_so_where_asked() -> None:
    plain = read_column("note", {"text": 8})
    told, filled = read_column("note", {"text": 8, "indicator": True}), read_column("note", {"text": 8, "fill": "none"})
    assert plain is not None
    assert told is not None
    assert filled is not None
    for absent in ("", None, float("nan"), "NA"):
        assert plain.encode(absent, {"NA"}) == (0.0,) * 8
        assert told.encode(absent, {"NA"}) == (0.0,) * 8 + (1.0,)
        assert filled.encode(absent, {"NA"}) == filled.encode("none")
    assert told.encode("a word")[-1] == 0.0


def test_lines_of_a_text_end_alike_whoever_wrote_them() -> None:
    assert words_of("Good film.\r\nBad end") == words_of("good film\nbad end") == ["good", "film", "bad", "end"]
