"""What is released of all examples once, before training begins: through the door, from randomness of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from reticent import checkpoint
from reticent.accounting import Event, Ledger, Planned
from reticent.accounting.ledger import read_entries
from reticent.errors import ResumeError
from reticent.inside import Randomness, Store, Vault
from reticent.inside.several import here

BEFORE_THE_FIRST = {"centre": -1, "statistics": -2, "fill": -3, "whiten": -4}
"""The rounds of the releases: randomness belongs to a place, so none is used again, not in training either."""


def release_once(
    name: str,
    private: Store,
    allowed: tuple[Event, ...],
    release: Callable[[Vault], dict[str, Tensor]],
    seed: int | None,
    folder: Path | None,
) -> dict[str, Any]:
    """What is released before training, under one name.

    In a folder, the key is on disk before anything is released with them, and what was released is not asked again:
    it takes the place of the key, which would tell what is under the noise. On several ranks the first asks for all.
    """
    return here().share(lambda: _released_once(name, private, allowed, release, seed, folder))


def _released_once(
    name: str,
    private: Store,
    allowed: tuple[Event, ...],
    release: Callable[[Vault], dict[str, Tensor]],
    seed: int | None,
    folder: Path | None,
) -> dict[str, Any]:
    kept = _Kept(folder / f"{name}.safetensors" if folder is not None else None)
    fresh = Randomness.fresh() if seed is None else Randomness.from_seed(seed)
    randomness = Randomness.from_state(kept.tree["randomness"]) if "randomness" in kept.tree else fresh
    ledger = Ledger(folder / f"{name}.jsonl" if folder is not None else None)
    vault = Vault(private, randomness=randomness, ledger=ledger, allowance=Planned(allowed))
    if "mean" in kept.tree:
        if ledger.tally() != Counter(allowed):
            raise ResumeError(
                f"{ledger.path} does not hold what was released for {name}: bring it back as it was, or start a new "
                "run in another folder"
            )
        return kept.tree
    if folder is not None and not kept.tree and not ledger.tally() and _rounds_made(folder):
        raise ResumeError(
            f"{folder} holds rounds of a run whose {name} is gone, and to release it again would cost twice: bring "
            f"back {name}.safetensors and {name}.jsonl, or start a new run in another folder"
        )
    kept.claim(vault.fingerprint(), randomness)
    with vault.round(BEFORE_THE_FIRST[name]):
        kept.write(release(vault))
    return kept.tree


def _rounds_made(folder: Path) -> bool:
    """Whether training has begun there, with numbers that were released before it."""
    made = folder / "ledger.jsonl"
    return made.exists() and bool(read_entries(made))


class _Kept:
    """The key, then what was released with them, on disk if there is a folder."""

    def __init__(self, path: Path | None):
        self._path = path
        self.tree: dict[str, Any] = checkpoint.read(path) if path is not None and path.exists() else {}

    def claim(self, fingerprint: str, randomness: Randomness) -> None:
        """Write down the key and whom it is for; refuse other examples than those."""
        if self.tree.get("examples", fingerprint) != fingerprint:
            raise ResumeError(
                f"{self._path} was made for other examples: the same noise on others would reveal them. "
                "Give another folder."
            )
        self.write({"randomness": randomness.state(), "examples": fingerprint})

    def write(self, tree: dict[str, Any]) -> None:
        """Put this in the place of what was there."""
        self.tree = tree
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            checkpoint.write(self._path, tree)
