"""Damage: a byte of a file that we wrote is changed; it is named, or what is read is what was written."""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import reticent as rt
from reticent import checkpoint
from reticent.accounting.ledger import read_ledger
from reticent.attacks.shadows import _stored
from reticent.certificate import read_card
from reticent.data.loading import arrays
from reticent.errors import FileWarning, ReticentError
from reticent.experiments.stored import kept_recipe
from reticent.results import read_record, read_result, read_results
from soak.tally import Tally

Read = Callable[[Path], object]


def _cached(path: Path) -> object:
    arrays._LOOKED_AT.clear()
    found = arrays.read_arrays(path.parent)
    return None if found is None else found["x"].tolist()


KINDS: dict[str, tuple[str, Read]] = {
    "ledger": ("ledger.jsonl", lambda path: read_ledger(path).entries),
    "card": ("card.json", lambda path: read_card(path.parent)),
    "weights": ("model.safetensors", lambda path: str(rt.load(path.parent).model.state_dict())),
    "checkpoint": ("private/checkpoint.safetensors", lambda path: str(checkpoint.read(path))),
    "result": ("result.json", lambda path: read_result(path.parent)),
    "record": ("record.json", lambda path: read_record(path.parent)),
    "results": ("results.jsonl", read_results),
    "recipe": ("recipe.json", lambda path: kept_recipe(path.parent)),
    "shadow": ("shadow-000.safetensors", lambda path: str(_stored(path.parent, 0))),
    "cache": ("cache/x.npy", _cached),
}


def soak_damage(run: Path, each: int, *, seed: int = 0) -> Tally:
    """So many damaged files of each kind, in the folder of a run (see `readers`)."""
    tally, rng = Tally("damaged files"), random.Random(seed)
    for kind, (name, read) in KINDS.items():
        for _ in range(each):
            if kind == "cache":
                shutil.rmtree(run / "cache", ignore_errors=True)
                arrays.write_arrays(run / "cache", {"x": np.arange(200)}, "it")
            path = run / name
            whole = path.read_bytes()
            before = repr(read(path))
            tally.add(kind, _problem(path, _damaged(whole, rng), read, before))
            if kind != "cache":
                path.write_bytes(whole)
    return tally


def _damaged(whole: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(whole))
    match rng.randrange(4):
        case 0:
            return whole[:place]
        case 1:
            return whole[:place] + bytes(len(whole) - place)
        case _:
            return whole[:place] + bytes([whole[place] ^ (1 << rng.randrange(8))]) + whole[place + 1 :]


def _problem(path: Path, raw: bytes, read: Read, before: str) -> str | None:
    if raw == path.read_bytes():
        return None
    path.write_bytes(raw)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", FileWarning)
            found = repr(read(path))
    except (ReticentError, FileWarning):
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    lost = path.name == "ledger.jsonl" and before.startswith(found[:-2])  # a torn end: resume and verify compare counts
    return None if found == before or lost else f"{path.name} was loaded: {found[:100]}"
