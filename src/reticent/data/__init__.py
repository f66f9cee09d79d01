"""Datasets of the papers, the user's own, and features computed from them."""

from reticent.data import fetch
from reticent.data.canaries import Planted, make_canaries, plant
from reticent.data.catalogue import is_own, load, names, resolve
from reticent.data.examples import Dataset, Examples
from reticent.data.features.extractors import extract
from reticent.data.features.scattering import Scattering
from reticent.data.features.statistics import release_moments
from reticent.data.loading.arrow import arrow
from reticent.data.loading.foreseeing import ahead
from reticent.data.loading.images import image_folder
from reticent.data.loading.maps import mapped
from reticent.data.loading.opening import Declaration
from reticent.data.loading.own import as_examples, describe
from reticent.data.loading.padding import padded
from reticent.data.preprocessing import Preprocessing
from reticent.data.sets.imdb import imdb_texts, imdb_words
from reticent.data.sets.vectors import glove
from reticent.data.splits import AttackSplit, attack_split, without_duplicates
from reticent.data.tables.proposing import ProposedSchema, propose
from reticent.data.tables.schema import Schema, check, read_schema, table
from reticent.data.tables.writing import to_toml

__all__ = [
    "AttackSplit",
    "Dataset",
    "Declaration",
    "Examples",
    "Planted",
    "Preprocessing",
    "ProposedSchema",
    "Scattering",
    "Schema",
    "ahead",
    "arrow",
    "as_examples",
    "attack_split",
    "check",
    "describe",
    "extract",
    "fetch",
    "glove",
    "image_folder",
    "imdb_texts",
    "imdb_words",
    "is_own",
    "load",
    "make_canaries",
    "mapped",
    "names",
    "padded",
    "plant",
    "propose",
    "read_schema",
    "release_moments",
    "resolve",
    "table",
    "to_toml",
    "without_duplicates",
]
