"""Datasets of the papers, the user's own, and features computed from them."""

from reticent.data import fetch
from reticent.data.catalogue import load, names
from reticent.data.examples import Dataset, Examples
from reticent.data.extractors import features
from reticent.data.imdb import imdb_texts, imdb_words
from reticent.data.maps import mapped
from reticent.data.scattering import Scattering
from reticent.data.tables import table
from reticent.data.vectors import glove

__all__ = [
    "Dataset",
    "Examples",
    "Scattering",
    "features",
    "fetch",
    "glove",
    "imdb_texts",
    "imdb_words",
    "load",
    "mapped",
    "names",
    "table",
]
