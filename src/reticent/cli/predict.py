"""`reticent predict`: a stored model's answers for new data, by the names of the classes."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option


def predict(
    run: Annotated[Path, Argument(help="Folder of a finished run.")],
    data: Annotated[
        Path, Argument(help="A table, .npz, folder of images or .txt with a text a line, as the run was trained on.")
    ],
    out: Annotated[Path | None, Option(help="A CSV file to write; default: stdout.")] = None,
    probabilities: Annotated[bool, Option("--probabilities", help="The model's certainty of every class too.")] = False,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Say which class each row of new data belongs to, or its number; the answers are as private as the rows."""
    from reticent.data.loading.images import image_files
    from reticent.data.preprocessing import names_of, said_by
    from reticent.errors import SettingError
    from reticent.evaluating import predict as answers_of
    from reticent.files import write_private
    from reticent.trained import load

    trained = load(run)
    answers = answers_of(trained.model, trained.inputs(data))
    classes = trained.preprocessing.classes if trained.preprocessing is not None else ()
    words = names_of(classes, answers) if trained.preprocessing is None else said_by(trained.preprocessing, answers)
    header, rows = ["prediction"], [[name] for name in words]
    if data.is_dir():
        header, rows = ["file", *header], [[file.name, *row] for file, row in zip(image_files(data), rows, strict=True)]
    if probabilities and not classes:
        raise SettingError(
            "this model predicts a number: it has no classes to be certain of, leave out --probabilities"
        )
    if probabilities:
        header += classes
        rows = [
            [*row, *(f"{chance:.6g}" for chance in line)]
            for row, line in zip(rows, answers.softmax(1).tolist(), strict=True)
        ]
    print(f"reticent: these answers tell of what is in {data}, and are as private as that.", file=sys.stderr)
    if as_json:
        print(json.dumps([dict(zip(header, row, strict=True)) for row in rows]))
        return
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    if out is None:
        print(text.getvalue(), end="")
    else:
        write_private(out, text.getvalue().encode())
