"""One reader under atheris, libFuzzer for Python: `python -m soak.guided ledger -runs=100000`; needs the extra `fuzz`.

The soak has a fuzzer of its own, which needs no package, is the same on every machine and goes through all readers in
one process; this one is for a long look at a single reader. What it takes are the words of libFuzzer.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["reticent"]):
    from soak.fuzzing import problem
    from soak.readers import readers


def main() -> None:
    """Until it has run as often as asked for, or a file is found that ends in a traceback."""
    folder = Path(tempfile.mkdtemp())
    every = {reader.name: reader for reader in readers(folder)}
    if len(sys.argv) < 2 or sys.argv[1] not in every:
        sys.exit(f"say which reader: {', '.join(every)}")
    reader = every[sys.argv[1]]
    corpus, path = folder / "corpus", folder / reader.file
    corpus.mkdir()
    for number, seed in enumerate(reader.seeds):
        (corpus / str(number)).write_bytes(seed)

    def read(raw: bytes) -> None:
        path.write_bytes(raw)
        if (found := problem(reader.read, path)) is not None:
            raise AssertionError(found)

    atheris.Setup([sys.argv[0], *sys.argv[2:], str(corpus)], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
