"""Pages that are written from the code: the Python reference, every setting, every command."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "reticent"


@cache
def public() -> dict[str, tuple[str, ...]]:
    """The public names of each module that lists some, by the module's name; read, not imported.

    >>> "fit" in public()["reticent"], "Gaussian" in public()["reticent.accounting"]
    (True, True)
    """
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and [getattr(name, "id", "") for name in node.targets] == ["__all__"]:
                parts = path.relative_to(SOURCE.parent).with_suffix("").parts
                found[".".join(parts).removesuffix(".__init__")] = tuple(ast.literal_eval(node.value))
    return found


def homes() -> dict[str, str]:
    """Where the reference describes each public name: the first module, from the top, that lists it."""
    described: dict[str, str] = {}
    for name in names():
        described.setdefault(origin(name), name)
    return {name: described[origin(name)] for name in names()}


def names() -> Iterator[str]:
    """Every public name, with its module, the nearest to the top first; modules within modules are not among them."""
    for module, exported in sorted(public().items(), key=lambda item: (item[0].count("."), item[0])):
        yield from (one for name in exported if not is_module(origin(one := f"{module}.{name}")))


def is_module(name: str) -> bool:
    """Whether a name is that of one of our modules."""
    place = SOURCE.parent / Path(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").exists()


@cache
def origin(name: str) -> str:
    """The module that defines a name, and the name.

    >>> origin("reticent.fit"), origin("reticent.accounting.Budget") == origin("reticent.Budget")
    ('reticent.fitting.fit', True)
    """
    if is_module(name):
        return name
    module, _, short = name.rpartition(".")
    place = SOURCE.parent / Path(*module.split("."))
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reticent"):
            for alias in node.names:
                if (alias.asname or alias.name) == short:
                    return origin(f"{node.module}.{alias.name}")
    return name


def room(module: str) -> str:
    """The page of the reference that has a module: that of its room."""
    return module.split(".")[1] if "." in module else "index"


def reference() -> dict[str, str]:
    """The pages of the Python reference, by their place in the site."""
    written: dict[str, list[str]] = {}
    described = homes()
    for module, exported in sorted(public().items(), key=lambda item: (item[0].count("."), item[0])):
        page = written.setdefault(room(module), [f"# `{'reticent' if '.' not in module else module}`"])
        if module.count(".") > 1:
            page.append(f"## `{module}`")
        page.append(_said(module))
        if module == "reticent":
            rooms = sorted({name for name in map(room, public()) if name != "index"})
            page.append("Rooms: " + ", ".join(f"[`{name}`]({name}.md)" for name in rooms) + ".")
        for name in (f"{module}.{name}" for name in exported if f"{module}.{name}" in described):
            if described[name] == name:
                page.append(f"::: {name}")
            else:
                page.append(f"### `{name}` {{ #{name} }}\n\nThe same as [`{described[name]}`][{described[name]}].")
    return {f"reference/{name}.md": "\n\n".join(parts) + "\n" for name, parts in written.items()}


def _said(module: str) -> str:
    """What a module says it is."""
    place = SOURCE.parent / Path(*module.split("."))
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def settings() -> str:
    """Everything that can be set for `reticent train`, and the options of every method, as a page."""
    from reticent import catalogue
    from reticent.cli.settings import SAYS
    from reticent.experiments.recipe import Recipe

    values = Recipe().to_json()
    parts = [
        "# Every setting",
        "On the command line (`--epsilon 3`, or `--set average_last=0.2` where there is no option of the name), or in "
        "a TOML file that `--config` names. `reticent settings METHOD --data NAME` prints the same, with the values "
        'for a dataset. "By the rule" is [from public numbers alone](choosing.md#the-rule). In Python: '
        "[every option of `rt.fit`](fit.md).",
        _table([(name, says, values[name]) for name, says in SAYS.items()]),
    ]
    for method in catalogue.names():
        told, page = catalogue.find(method).options, catalogue.find(method).page.removeprefix("docs/")
        rows = [(name, told.get(name, ""), value) for name, value in catalogue.options(method).items()]
        rows = [(name, says or SAYS.get(name, name.replace("_", " ")), value) for name, says, value in rows]
        parts += [f"## {method}", f"See [its page]({page})."]
        parts += [_table(rows)] if rows else ["It has no options of its own."]
    return "\n\n".join(parts) + "\n"


def _table(rows: list[tuple[str, str, object]]) -> str:
    cells = (
        f"| `{name}` | {_cell(says)} | {'' if value in (None, {}) else f'`{_cell(value)}`'} |"
        for name, says, value in rows
    )
    return "\n".join(["| setting | is | if not said |", "|---|---|---|", *cells])


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def command_line() -> str:
    """Every command with its arguments and options, as a page."""
    import typer

    from reticent.cli import app

    parts = ["# Command line", "Every command has `--help`; most answer in JSON with `--json`."]
    for words, command in _commands(typer.main.get_command(app), ("reticent",)):
        parts += [f"## {' '.join(words)}", _cell((command.help or "").split("\f")[0])]
        rows = []
        for option in command.params:
            named = (
                getattr(option, "opts", [option.name]) if option.param_type_name == "option" else [option.name.upper()]
            )
            default = (
                option.default
                if isinstance(option.default, (str, int, float)) and option.default is not False
                else None
            )
            rows.append((" ".join(named), getattr(option, "help", None) or "", default))
        rows = [row for row in rows if row[0] != "--help"]
        parts += [_table(rows).replace("| setting |", "| option |", 1)] if rows else []
    return "\n\n".join(parts) + "\n"


def _commands(command, words):  # type: ignore[no-untyped-def]  # click's own types are typer's business
    for name, inner in getattr(command, "commands", {}).items():
        if hasattr(inner, "commands"):
            yield from _commands(inner, (*words, name))
        else:
            yield (*words, name), inner
