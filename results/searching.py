"""What all searches do: a line in the log for every setting that is not there yet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch


def search(log: Path, wanted: Iterable[Mapping[str, Any]], tried: Callable[..., list[float]], digits: int) -> None:
    """Try each setting; the log gets the mean of what its runs got, and how sure it is."""
    torch.set_num_threads(1)
    known = [json.loads(line)["settings"] for line in log.read_text().splitlines()] if log.exists() else []
    for settings in map(dict, wanted):
        if settings not in known:
            found = tried(**settings)
            numbers = {"accuracy": mean(found), "standard error": stdev(found) / len(found) ** 0.5}
            line = {"settings": settings} | {name: round(value, digits) for name, value in numbers.items()}
            with log.open("a") as lines:
                lines.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)
