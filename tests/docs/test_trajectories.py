"""Figure 1 of DPSUR and SA-DPSGD: what is kept by a test ends nearer to the best weights than what is kept always."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "docs" / "trajectories.py"


def test_choosing_updates_ends_nearer_for_as_many_kept() -> None:
    spec = importlib.util.spec_from_file_location("trajectories", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    walks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(walks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # with so little data epsilon is large, and that is not the point
        away = {name: walks.distance(method, walks=2) for name, method in walks.methods().items()}
    assert away["DPSUR"] < away["DP-SGD"]
    assert away["SA-DPSGD"] < away["DP-SGD"]
