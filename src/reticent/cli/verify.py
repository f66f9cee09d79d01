"""`reticent verify`: do weights, result, ledger, card and price of a folder fit together?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option


def verify(
    folder: Annotated[Path, Argument(help="Folder of a finished run, or of a saved model.")],
    fingerprint: Annotated[str | None, Option(help="The certificate's SHA-256, as it was published.")] = None,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Check a run's certificate without its data, and price it again; exit code 0 if all fits, 2 if anything does not.

    It proves that the files belong together, not who made them: see docs/verify.md.
    """
    from reticent.certificate import verify as check

    found = check(folder, fingerprint=fingerprint)
    print(json.dumps(found.to_json()) if as_json else found)
    if not found.ok:
        raise typer.Exit(2)
