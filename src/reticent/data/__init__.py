"""Datasets of the papers, the user's own, and features computed from them."""

from reticent.data.catalogue import load, names
from reticent.data.examples import Dataset, Examples

__all__ = ["Dataset", "Examples", "load", "names"]
