"""The certificate: a card that binds weights, result, ledger and price, and what checks it without the data."""

from reticent.certificate.card import CARD, WEIGHTS, Card, read_card
from reticent.certificate.charged import Charged
from reticent.certificate.report import Check, Verified
from reticent.certificate.verifying import verify

__all__ = ["CARD", "WEIGHTS", "Card", "Charged", "Check", "Verified", "read_card", "verify"]
