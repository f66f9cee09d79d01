"""Datasets of the papers, the user's own, and features computed from them."""

from reticent.data import fetch
from reticent.data.canaries import Planted, make_canaries, plant
from reticent.data.catalogue import load, names, resolve
from reticent.data.examples import Dataset, Examples
from reticent.data.extractors import features
from reticent.data.images import image_folder
from reticent.data.imdb import imdb_texts, imdb_words
from reticent.data.maps import mapped
from reticent.data.own import as_examples, describe
from reticent.data.scattering import Scattering
from reticent.data.splits import AttackSplit, attack_split, without_duplicates
from reticent.data.statistics import Moments, release_moments
from reticent.data.tables import table
from reticent.data.vectors import glove

__all__ = [
    "AttackSplit",
    "Dataset",
    "Examples",
    "Moments",
    "Planted",
    "Scattering",
    "as_examples",
    "attack_split",
    "describe",
    "features",
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
