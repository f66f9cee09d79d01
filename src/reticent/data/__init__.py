"""Datasets of the papers, the user's own, and features computed from them."""

from reticent.data.catalogue import load, names
from reticent.data.examples import Dataset, Examples
from reticent.data.extractors import features
from reticent.data.maps import mapped
from reticent.data.scattering import Scattering

__all__ = ["Dataset", "Examples", "Scattering", "features", "load", "mapped", "names"]
