"""Bugs of the books: what the ledger is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reticent.accounting import Subsampled
from reticent.inside.draws import Poisson
from reticent.inside.mechanisms import GaussianNoise
from reticent.inside.planted.bug import Code, bug
from reticent.inside.sealed import Sealed
from reticent.inside.vault import Vault


@bug(GaussianNoise, "event", "the ledger is told twice the noise there is")
def _ledger_too_kind(right: Code) -> Code:
    return lambda self: right(replace(self, noise_multiplier=2 * self.noise_multiplier))


@bug(Poisson, "amplify", "the ledger is told half the rate there is")
def _rate_too_kind(_right: Code) -> Code:
    return lambda _self, event, settings: Subsampled(settings.rate / 2, event)


@bug(Vault, "_write", "an empty draw is not written into the ledger")
def _empty_not_charged(right: Code) -> Code:
    def write(self: Vault, event: Any, sealed: Sealed) -> None:
        if len(sealed.draw._index):
            right(self, event, sealed)

    return write
