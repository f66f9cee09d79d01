"""`reticent methods`: every method, what it changes, and what may be promised."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

if TYPE_CHECKING:
    from reticent.about import MethodRow


def methods(
    name: Annotated[str | None, Argument(help="One method, with its options and equations.")] = None,
    table: Annotated[bool, Option("--markdown", help="The table that the README holds.")] = False,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """List the methods, or show one in full."""
    from reticent.catalogue import listing, markdown
    from reticent.errors import UnknownName

    if table:
        print(markdown("docs/"))
        return
    rows = listing()
    if name is not None:
        rows = [row for row in rows if row["name"] == name]
        if not rows:
            raise UnknownName("method", name, [row["name"] for row in listing()])
    if as_json:
        print(json.dumps(rows))
    elif name is None:
        for row in rows:
            print(f"{row['name']:<12} {row['changes']}\n{'':<12} {row['guarantee']}")
    else:
        _show(rows[0])


def _show(row: MethodRow) -> None:
    print(f"{row['title']}\n{row['paper']}\n")
    print(f"changes    {row['changes']}\nguarantee  {row['guarantee']}\nmore       {row['docs']}")
    if row["options"]:
        print("\noptions")
    for option, about in row["options"].items():
        print(f"  {option:<24} {about['does']} [{about['default']}]")
    if row["equations"]:
        print("\nequations")
    for equation, place in row["equations"].items():
        print(f"  {equation:<24} {place}")
