"""The report of a verification: one check after the other, with what was found and what to do about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from reticent.accounting import Guarantee


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    >>> print(Check("weights", ok=False, found="model.safetensors is not there", remedy="bring it back"))
    WRONG weights: model.safetensors is not there -> bring it back
    """

    name: str
    ok: bool
    found: str
    remedy: str = ""
    """What to do; empty where nothing is wrong."""
    looked: bool = True
    """False where it could not be looked at: that speaks neither for nor against."""

    def __str__(self) -> str:
        """One line."""
        word = ("ok" if self.looked else "-") if self.ok else "WRONG"
        return f"{word:5} {self.name}: {self.found}" + (f" -> {self.remedy}" if self.remedy else "")


@dataclass(frozen=True)
class Verified:
    """Everything that was checked of a folder; `ok` if nothing is wrong."""

    folder: str
    guarantee: Guarantee | None
    fingerprint: str | None
    """The checksum of the card, which binds all the rest: publish it, or sign the card, to have it last."""
    checks: tuple[Check, ...]
    old: bool = False
    """Whether the card is from a version that bound nothing: it cannot be checked, and so is not `ok`."""

    @property
    def ok(self) -> bool:
        """Whether everything fits together."""
        return all(check.ok for check in self.checks)

    @property
    def wrong(self) -> list[str]:
        """The names of the checks that failed."""
        return [check.name for check in self.checks if not check.ok]

    def __str__(self) -> str:
        """A line a check, and one for all."""
        said = f"{self.guarantee}" if self.ok else f"not to be relied on: {', '.join(self.wrong)}"
        end = [f"certificate {self.fingerprint}"] if self.fingerprint else []
        return "\n".join([*map(str, self.checks), said, *end])

    def to_json(self) -> dict[str, object]:
        """The report as plain data."""
        return {
            "folder": self.folder,
            "ok": self.ok,
            "wrong": self.wrong,
            "fingerprint": self.fingerprint,
            "guarantee": None if self.guarantee is None else self.guarantee.to_json(),
            "checks": [asdict(check) for check in self.checks],
        }
