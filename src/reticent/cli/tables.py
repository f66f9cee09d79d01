"""Options that say how a file of one's own is read: the same in every command that takes one."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from typer import Option

Data: TypeAlias = Annotated[
    str | None, Option(help="A table, .npz or folder of images; or see `reticent data list`. [default: digits]")
]
Schema: TypeAlias = Annotated[str | None, Option(help="What its columns may hold: see `reticent data schema`.")]
Accept: TypeAlias = Annotated[
    bool, Option("--accept-schema", help="Take the proposed schema, read from the records, as public knowledge.")
]
Label: TypeAlias = Annotated[str | None, Option(help="The column to predict, for a proposed schema.")]
TestData: TypeAlias = Annotated[str | None, Option(help="A file like --data to measure accuracy on.")]


def declared(schema: str | None, accept: bool, label: str | None, test_data: str | None = None) -> dict[str, object]:
    """What was said, as settings of a recipe.

    >>> declared("schema.toml", False, None)
    {'schema': 'schema.toml'}
    """
    said = {"schema": schema, "accept_schema": accept or None, "label": label, "test_data": test_data}
    return {name: value for name, value in said.items() if value is not None}
