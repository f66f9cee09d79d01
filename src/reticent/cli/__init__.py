"""The command line: thin commands over the library; nothing imports it."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated, TextIO

import typer

from reticent.cli import (
    account,
    attack,
    audit,
    compare,
    data,
    demo,
    doctor,
    export,
    ledger,
    methods,
    plan,
    predict,
    report,
    reproduce,
    settings,
    train,
    tune,
    verify,
)
from reticent.errors import ReticentError

INTERRUPTED = 130  # how a shell, and typer, tell of Ctrl-C

app = typer.Typer(
    name="reticent",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train models that keep their training data to themselves, and say exactly what is proved.",
)
COMMANDS = (
    train.train,
    predict.predict,
    export.export,
    compare.compare,
    reproduce.reproduce,
    account.account,
    plan.plan,
    tune.tune,
    attack.attack,
    audit.audit,
    verify.verify,
    doctor.doctor,
    report.report,
    methods.methods,
    settings.settings,
    demo.demo,
)
for command in COMMANDS:
    app.command()(command)
app.add_typer(data.app, name="data")
app.add_typer(ledger.app, name="ledger")


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if "TORCHELASTIC_RUN_ID" in os.environ and context.invoked_subcommand not in (None, "train"):
        from reticent.inside.several import refuse_several

        refuse_several(f"`reticent {context.invoked_subcommand}`")
    if version:
        from reticent import __version__

        print(__version__)
        raise typer.Exit


def _warn(
    message: Warning | str,
    category: type[Warning],  # noqa: ARG001 - Python's own signature
    filename: str,  # noqa: ARG001
    lineno: int,  # noqa: ARG001
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    print(f"reticent: {message}", file=sys.stderr)


def main() -> None:
    """Run the command line; what Reticent refuses is told in one line, with exit code 2."""
    warnings.showwarning = _warn
    try:
        app()
    except ReticentError as error:
        print(f"reticent: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            print("reticent: interrupted; the same command goes on from here (train: with --resume)", file=sys.stderr)
        raise
