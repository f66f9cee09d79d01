"""`reticent export`: a stored model for those who do not have Reticent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option


def export(
    run: Annotated[Path, Argument(help="Folder of a finished run.")],
    out: Annotated[Path, Argument(help="Folder to write to.")],
    form: Annotated[
        str, Option(help="plain (safetensors and a few lines), torch-export, torchscript or onnx.")
    ] = "plain",
) -> None:
    """Write a model so that it can be used without Reticent."""
    from reticent.exporting import export as write
    from reticent.trained import load

    print(write(load(run), out, form))
