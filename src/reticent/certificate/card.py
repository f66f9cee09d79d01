"""The card: what is said of a model, what it was priced by, and the checksums of the files that belong to it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reticent.accounting import Guarantee, Spending
from reticent.accounting.lineage import UNKNOWN_LINEAGE, Lineage
from reticent.certificate.charged import Charged
from reticent.errors import DataError, ResumeError
from reticent.results import read_guarantee
from reticent.results.fields import Fields
from reticent.results.sealing import read_sealed, seal, seal_of

CARD = "card.json"
"""The card of a trained model, in its folder."""
WEIGHTS = "model.safetensors"
"""Its weights."""
LEDGERS = ("ledger.jsonl", "fill.jsonl", "statistics.jsonl", "centre.jsonl", "whiten.jsonl")
"""What was released in the run, and before it."""
VERSION = 2
"""Of the fields of a card; those of version 1 do not say it, and hold no checksums."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """All that is said of a trained model, beside its weights.

    >>> Card(guarantee=Guarantee("none", 1.0, 1e-5), rounds=3, kept=3).to_bytes()[:24]
    b'{\\n  "card": 2,\\n  "guaran'
    """

    guarantee: Guarantee
    rounds: int
    kept: int
    about: Mapping[str, object] = field(default_factory=dict)
    charged: Charged | None = None
    """None where nothing was charged: a model that claims nothing, or a card of an older version."""
    lineage: Lineage = UNKNOWN_LINEAGE
    """The runs that made the weights, and what each has cost the examples; older cards do not know."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of each file that belongs to it, by name."""
    version: int = VERSION

    @property
    def spending(self) -> Spending:
        """What the weights have cost the examples, from the first run that made them on."""
        return self.lineage.spending

    def to_bytes(self) -> bytes:
        """The card as it is stored, with its own checksum."""
        data = {
            "card": self.version,
            "guarantee": self.guarantee.to_json(),
            "rounds": self.rounds,
            "kept": self.kept,
            "about": dict(self.about),
            "charged": None if self.charged is None else self.charged.to_json(),
            "spending": self.spending.to_json(),
            "runs": self.lineage.to_json(),
            "files": dict(self.files),
        }
        return seal(data, indent=2)


def read_card(folder: Path) -> Card:
    """The card in a folder; refuses one that was changed."""
    path = folder / CARD
    if not path.exists():
        raise ResumeError(f"{folder} holds no trained model: {CARD} is not there; finish the run, or bring it back")
    said = Fields(read_sealed(path), str(path))
    version = said.get("card", int) or 1
    if version > VERSION:
        raise DataError(
            f"{path} is a card of version {version}, and this Reticent reads up to version {VERSION}: read it with "
            "the Reticent that wrote it, or a newer one (pip install --upgrade reticent)"
        )
    if version > 1 and seal_of(path) is None:
        raise DataError(f"{path} was changed since it was written: its checksum is gone. Bring it back as it was")
    charged, files = said.part("charged"), said.part("files")
    return Card(
        guarantee=read_guarantee(said.need_part("guarantee")),
        rounds=said.need("rounds", int),
        kept=said.need("kept", int),
        about=said.need_part("about").data,
        charged=None if charged is None else Charged.from_json(charged),
        lineage=_lineage(said, path),
        files={} if files is None else {name: files.need(name, str) for name in files.data},
        version=version,
    )


def _lineage(said: Fields, path: Path) -> Lineage:
    """The runs of a card; one that knows only what they cost together tells of them as of one run."""
    spent, runs = said.part("spending"), said.part("runs")
    if spent is None:
        return UNKNOWN_LINEAGE
    spending = Spending.from_json(dict(spent.data))
    if runs is None:
        return Lineage({digest_of(path): spending})
    lineage = Lineage.from_json(dict(runs.data))
    if lineage.spending != spending:
        raise DataError(f"{path} is damaged: what its runs cost is not what it says. Bring it back as it was")
    return lineage


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
