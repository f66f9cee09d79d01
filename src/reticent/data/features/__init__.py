"""Features computed from each example by public rules or frozen networks, and statistics released through the door."""

from reticent.data.features.extractors import extract
from reticent.data.features.frozen import Frozen
from reticent.data.features.scattering import Scattering
from reticent.data.features.statistics import release_moments
from reticent.data.features.whitened import Whitened

__all__ = ["Frozen", "Scattering", "Whitened", "extract", "release_moments"]
