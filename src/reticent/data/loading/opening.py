"""The user's own files by their path: tables, arrays and folders of images, read by what is declared of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from reticent.data.examples import Dataset, Examples
from reticent.data.loading.images import ImageSchema, propose_images
from reticent.data.loading.npz import ArraySchema, propose_arrays, read_npz
from reticent.data.preprocessing import Preprocessing
from reticent.data.tables.frames import SUFFIXES
from reticent.data.tables.proposing import ProposedSchema, propose
from reticent.data.tables.schema import Schema
from reticent.data.whose import persons_in
from reticent.errors import DataError
from reticent.inside import as_store
from reticent.inside.missing import warn_of_missing
from reticent.reading import read_json, read_toml, reading

ARRAYS = ".npz"
STORED = "schema.json"
"""What a run's folder calls the schema that its examples were read by."""


@dataclass(frozen=True)
class Declaration:
    """What is said of the user's own files beside their path."""

    schema: str | None = None
    label: str | None = None
    test: str | None = None
    accept: bool = False
    """Take the proposed schema, read from the records, as public knowledge."""
    groups: str | None = None
    """The column of a table, the array of a .npz file or the file beside arrays that says whose each row is."""


def is_path(name: str) -> bool:
    """Whether a dataset's name is a path that can be opened.

    >>> is_path("people.csv"), is_path("x.npz"), is_path("mnist")
    (True, True, False)
    """
    return name.lower().endswith((*SUFFIXES, ARRAYS)) or (name != "" and Path(name).is_dir())


def open_path(name: str, declared: Declaration) -> Dataset:
    """The dataset at a path; without a schema, it says what one could be."""
    found = schema_for(name, declared)
    path = Path(name)
    if isinstance(found, ArraySchema):
        arrays = read_npz(path)
        train, test = found.parts(arrays, name)
        warn_of_missing(as_store(train))
        if declared.groups is not None:
            train = replace(train, groups=persons_in(arrays.get(declared.groups), declared.groups, name))
    elif isinstance(found, ImageSchema):
        if declared.groups is not None:
            raise DataError(f"{name}: a folder of images does not say whose they are: groups is for tables and arrays")
        train, test = found.examples(_training(path)), None
        if (path / "test").is_dir():
            test = found.examples(path / "test")
    else:
        train, test = found.examples(path, groups=declared.groups), None
    if declared.test is not None:
        test = _test(found, declared.test)
    words = (
        "accepted as it was read from the records" if declared.accept else f"by {declared.schema or 'its class names'}"
    )
    note = f"{declared.test or name}, {words}"
    return Dataset(path.stem, train, test, len(found.classes) or 1, note, tuple(found.classes) or None)


def schema_for(name: str, declared: Declaration) -> Schema | ImageSchema | ArraySchema:
    """What was declared of the file, or the proposal if that is accepted; else an error that tells the proposal."""
    if declared.schema is not None:
        try:
            return from_json(read_toml(Path(declared.schema)))
        except DataError as error:
            raise DataError(f"schema {declared.schema}: {error}") from error
    proposal = propose_for(name, label=declared.label).without(declared.groups)
    if declared.accept:
        return from_json({**proposal.content, "accepted": True})
    if not proposal.read:
        return from_json(proposal.content)
    raise DataError(
        f"{name} has no schema. A proposal would tell of the private records: {proposal.told()}.\n"
        f"Look it through with `reticent data schema {name} > schema.toml` and give it as --schema schema.toml, or say "
        "--accept-schema if all of that is public knowledge."
    )


def propose_for(name: str, *, label: str | None = None, names: tuple[str, ...] = ()) -> ProposedSchema:
    """A schema for the file or folder at a path."""
    path = Path(name)
    if not path.exists():
        raise DataError(f"there is no file or folder {name}")
    if path.is_dir():
        images = propose_images(_training(path))
        content = {key: value for key, value in images.to_json().items() if key not in ("kind", "accepted")}
        return ProposedSchema(content, {str(path): ("size", "channels", "classes")})
    if name.lower().endswith(ARRAYS):
        arrays, read = propose_arrays(read_npz(path), name)
        return ProposedSchema({"classes": list(arrays.classes)}, {"y": ("classes",)} if read else {})
    return propose(path, label=label, names=names)


def from_json(content: Mapping[str, object]) -> Schema | ImageSchema | ArraySchema:
    """The schema of a table, of images or of arrays, by what it speaks of.

    >>> from_json({"classes": ["no", "yes"]})
    ArraySchema(classes=('no', 'yes'), accepted=False)
    """
    if "columns" in content or "label" in content:
        return Schema.from_json(content)
    return ImageSchema.from_json(content) if "size" in content else ArraySchema.from_json(content)


def read_stored(folder: Path) -> Preprocessing | None:
    """How the examples of the run in a folder were read, if it says so."""
    path = folder / STORED
    if not path.exists():
        return None
    found = read_json(path)
    with reading(path):
        return from_json(found if isinstance(found, dict) else {})


def _training(path: Path) -> Path:
    return path / "train" if (path / "train").is_dir() else path


def _test(found: Schema | ImageSchema | ArraySchema, name: str) -> Examples:
    if isinstance(found, ArraySchema):
        return found.parts(read_npz(Path(name)), name)[0]
    return found.examples(Path(name))
