"""Datasets of the papers, the user's own, and features computed from them."""

from reticent.data import fetch
from reticent.data.canaries import Planted, make_canaries, plant
from reticent.data.catalogue import load, names, resolve
from reticent.data.examples import Dataset, Examples
from reticent.data.features.extractors import extract
from reticent.data.features.scattering import Scattering
from reticent.data.features.statistics import release_moments
from reticent.data.loading.images import image_folder
from reticent.data.loading.maps import mapped
from reticent.data.loading.own import as_examples, describe
from reticent.data.loading.tables import table
from reticent.data.sets.imdb import imdb_texts, imdb_words
from reticent.data.sets.vectors import glove
from reticent.data.splits import AttackSplit, attack_split, without_duplicates

__all__ = [
    "AttackSplit",
    "Dataset",
    "Examples",
    "Planted",
    "Scattering",
    "as_examples",
    "attack_split",
    "describe",
    "extract",
    "fetch",
    "glove",
    "image_folder",
    "imdb_texts",
    "imdb_words",
    "load",
    "make_canaries",
    "mapped",
    "names",
    "plant",
    "release_moments",
    "resolve",
    "table",
    "without_duplicates",
]
